//! Tags of the account's resources.

use serde_json::{Value, json};

use super::world::World;
use super::{Refusal, Shared, text};

impl Shared {
    pub(super) fn add_tags(&self, request: &Value) -> Result<Value, Refusal> {
        self.change(|world| {
            let arn = text(request, "ResourceArn");
            must_exist(world, arn)?;
            tag(world, arn, request);
            Ok(json!({"Tags": tags(world, arn)}))
        })
    }

    pub(super) fn list_tags(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let arn = text(request, "ResourceArn");
        must_exist(&world, arn)?;
        Ok(json!({"Tags": tags(&world, arn)}))
    }
}

/// Stores the tags of a request that creates a resource.
pub(super) fn tag(world: &mut World, arn: &str, request: &Value) {
    let known = world.tags.entry(arn.to_owned()).or_default();
    for tag in request["Tags"].as_array().into_iter().flatten() {
        known.insert(text(tag, "Key").to_owned(), text(tag, "Value").to_owned());
    }
}

fn tags(world: &World, arn: &str) -> Vec<Value> {
    let tags = world.tags[arn].iter();
    tags.map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

fn must_exist(world: &World, arn: &str) -> Result<(), Refusal> {
    if world.tags.contains_key(arn) {
        return Ok(());
    }
    Err(Refusal::validation(&format!("Could not find resource \"{arn}\".")))
}
