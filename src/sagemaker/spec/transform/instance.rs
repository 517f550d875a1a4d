//! The instance types of Batch Transform.

/// The sizes by family of SageMaker's `TransformInstanceType` (botocore 1.44.5).
const FAMILIES: &[(&str, &[&str])] = &[
    ("m4", &["xlarge", "2xlarge", "4xlarge", "10xlarge", "16xlarge"]),
    ("c4", &["xlarge", "2xlarge", "4xlarge", "8xlarge"]),
    ("p2", &["xlarge", "8xlarge", "16xlarge"]),
    ("p3", &["2xlarge", "8xlarge", "16xlarge"]),
    ("c5", &["xlarge", "2xlarge", "4xlarge", "9xlarge", "18xlarge"]),
    ("m5", &["large", "xlarge", "2xlarge", "4xlarge", "12xlarge", "24xlarge"]),
    ("m6i", SIXTH),
    ("c6i", SIXTH),
    ("r6i", SIXTH),
    ("m7i", SEVENTH),
    ("c7i", SEVENTH),
    ("r7i", SEVENTH),
    ("g4dn", &["xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge"]),
    ("g5", GRAPHICS),
    ("g6", GRAPHICS),
    ("g6e", GRAPHICS),
    ("trn1", &["2xlarge", "32xlarge"]),
    ("inf2", &["xlarge", "8xlarge", "24xlarge", "48xlarge"]),
];
const SIXTH: &[&str] =
    &["large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "32xlarge"];
const SEVENTH: &[&str] =
    &["large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge"];
const GRAPHICS: &[&str] = &["xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceType<'t> {
    /// `m5`
    pub family: &'t str,
    /// `xlarge`
    pub size: &'t str,
}

impl<'t> InstanceType<'t> {
    /// Parses `ml.m5.xlarge`; `None` for text in another form.
    pub fn parse(text: &'t str) -> Option<Self> {
        let (family, size) = text.strip_prefix("ml.")?.split_once('.')?;
        let fits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (fits(family) && fits(size)).then_some(Self { family, size })
    }

    /// Whether this version of Spotcheck knows it as an instance type of Batch Transform.
    pub fn is_known(&self) -> bool {
        self.known_sizes().is_some_and(|sizes| sizes.contains(&self.size))
    }

    /// The sizes of its family; `None` for a family that this version does not know.
    pub fn known_sizes(&self) -> Option<&'static [&'static str]> {
        let known = FAMILIES.iter().find(|(family, _)| *family == self.family);
        known.map(|(_, sizes)| *sizes)
    }

    /// Whether it has a GPU with CUDA.
    pub fn has_gpu(&self) -> bool {
        self.family.starts_with('p') || self.family.starts_with('g')
    }

    /// Whether its CPU is AWS's own Graviton, which runs only ARM containers: `m6g`, `c7gn`, `r8g`.
    pub fn is_arm(&self) -> bool {
        let behind_letters = self.family.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let generation = behind_letters.trim_start_matches(|c: char| c.is_ascii_digit());
        generation != behind_letters && generation.starts_with('g')
    }

    /// Whether it has local disks, which the hardware encrypts: `m5d`, `g4dn`, `g5`, `p5`, `trn1` (the “instance store
    /// volumes” in Amazon EC2's list of instance types).
    pub fn has_local_disks(&self) -> bool {
        const WITHOUT_THE_LETTER: [&str; 5] = ["g5", "g6", "gr6", "p5", "trn"];
        let behind_letters = self.family.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let attributes = behind_letters.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_listed = || {
            let mut listed = WITHOUT_THE_LETTER.iter();
            listed.any(|family| self.family.starts_with(family))
        };
        attributes.contains('d') || (is_listed() && !self.is_arm())
    }

    /// vCPUs, as AWS sizes these families: 2 for `large`, 4 for `xlarge`, then 4 times its number.
    pub fn vcpus(&self) -> Option<u32> {
        match self.size {
            "large" => Some(2),
            "xlarge" => Some(4),
            size => size.strip_suffix("xlarge")?.parse::<u32>().ok()?.checked_mul(4),
        }
    }
}

/// All known instance types, by family.
pub fn known_instance_types() -> impl Iterator<Item = String> {
    FAMILIES.iter().flat_map(|(family, sizes)| sizes.iter().map(move |size| format!("ml.{family}.{size}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_types_are_parsed() {
        let known = InstanceType::parse("ml.m5.xlarge").unwrap();
        assert!(known.is_known() && !known.has_gpu());
        assert_eq!(known.vcpus(), Some(4));
        let large = InstanceType::parse("ml.g5.12xlarge").unwrap();
        assert!(large.is_known() && large.has_gpu());
        assert_eq!(large.vcpus(), Some(48));
        assert!(!InstanceType::parse("ml.m5.huge").unwrap().is_known());
        assert!(!InstanceType::parse("ml.z9.xlarge").unwrap().is_known());
        for (name, is_arm) in [
            ("ml.m6g.large", true),
            ("ml.c7gn.large", true),
            ("ml.g5.xlarge", false),
            ("ml.g4dn.xlarge", false),
            ("ml.m5d.large", false),
        ] {
            assert_eq!(InstanceType::parse(name).unwrap().is_arm(), is_arm, "{name}");
        }
        for wrong in ["m5.xlarge", "ml.m5", "ml..xlarge", ""] {
            assert_eq!(InstanceType::parse(wrong), None, "{wrong}");
        }
        assert!(known_instance_types().all(|name| InstanceType::parse(&name).unwrap().is_known()));
    }
}
