//! Values in Spotcheck's own form and in AWS's form, with tables of where their members are in both.

use serde_json::{Value, json};

/// Pairs of JSON pointers to the same member: in Spotcheck's own form, and in AWS's form.
pub type Members = [(&'static str, &'static str)];

/// AWS's form of a value in Spotcheck's own form, in which tags are a map.
#[must_use]
pub fn to_aws(own: &Value, members: &Members) -> Value {
    let mut aws = moved(own, members.iter().copied());
    if let Some(tags) = aws["Tags"].as_object() {
        aws["Tags"] = tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    }
    aws
}

/// Spotcheck's own form of a value in AWS's form.
#[must_use]
pub fn from_aws(aws: &Value, members: &Members) -> Value {
    moved(aws, members.iter().map(|(own, aws)| (*aws, *own)))
}

fn moved<'m>(value: &Value, places: impl Iterator<Item = (&'m str, &'m str)>) -> Value {
    let mut moved = json!({});
    for (from, to) in places {
        let Some(member) = value.pointer(from) else {
            continue;
        };
        let place = to.split('/').skip(1).fold(&mut moved, |at, name| {
            if name != "0" {
                return &mut at[name];
            }
            if at.is_null() {
                *at = json!([null]);
            }
            &mut at[0]
        });
        *place = member.clone();
    }
    moved
}
