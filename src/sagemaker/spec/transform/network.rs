//! The network of a container: the VPC that it runs in, and whether it is isolated.

use serde::{Deserialize, Serialize};

use super::limits::Problems;

/// The limits of `VpcConfig`.
const MAX_SUBNETS: usize = 16;
const MAX_SECURITY_GROUPS: usize = 5;
const MAX_ID: usize = 32;

/// `VpcConfig` and `EnableNetworkIsolation` of `CreateModel` and `CreateTrainingJob`, in their form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    #[serde(rename = "VpcConfig")]
    pub vpc: Option<Vpc>,
    /// Whether the container has no network access at all. SageMaker still reads and writes S3 for it.
    #[serde(rename = "EnableNetworkIsolation", skip_serializing_if = "std::ops::Not::not")]
    pub is_isolated: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Vpc {
    /// 1 to 16 IDs.
    pub subnets: Vec<String>,
    /// 1 to 5 IDs.
    pub security_group_ids: Vec<String>,
}

impl Network {
    /// Adds the values that SageMaker would reject.
    pub fn check(&self, found: &mut Problems) {
        let Some(vpc) = &self.vpc else {
            return;
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_id = |id: &String| (1..=MAX_ID).contains(&id.len()) && id.bytes().all(fits);
        for (field, ids, most) in
            [("subnets", &vpc.subnets, MAX_SUBNETS), ("security groups", &vpc.security_group_ids, MAX_SECURITY_GROUPS)]
        {
            if !(1..=most).contains(&ids.len()) || !ids.iter().all(is_id) {
                found.add(field, format!("must be 1 to {most} IDs of letters, digits and hyphens"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_vpc_is_a_problem() {
        let check = |subnets: &[&str], security_groups: &[&str], expected: &[&str]| {
            let list = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
            let vpc = Vpc { subnets: list(subnets), security_group_ids: list(security_groups) };
            let mut found = Problems::default();
            Network { vpc: Some(vpc), is_isolated: false }.check(&mut found);
            let fields: Vec<&str> = found.0.iter().map(|problem| problem.field).collect();
            assert_eq!(fields, expected, "{subnets:?} {security_groups:?}");
        };
        check(&["subnet-0a1"], &["sg-0a1", "sg-0b2"], &[]);
        check(&["subnet-0a1"], &[], &["security groups"]);
        check(&[], &["sg-0a1"], &["subnets"]);
        check(&["subnet 0a1"], &[""], &["subnets", "security groups"]);
        check(&["subnet-0a1"], &["sg-0"; 6], &["security groups"]);
    }
}
