//! Models: an image, an archive and a role under a name.

use serde_json::{Value, json};

use super::objects::Place;
use super::tags::tag;
use super::world::{Birth, Row, listing, page};
use super::{ACCOUNT, REGION, Refusal, Shared, arn, text};

pub(super) struct Model {
    request: Value,
    birth: Birth,
}

impl Model {
    pub(super) fn image(&self) -> &str {
        text(&self.request["PrimaryContainer"], "Image")
    }

    /// The URI of the archive.
    pub(super) fn archive(&self) -> &str {
        text(&self.request["PrimaryContainer"], "ModelDataUrl")
    }

    pub(super) fn role(&self) -> &str {
        text(&self.request, "ExecutionRoleArn")
    }

    pub(super) fn environment(&self) -> Vec<(String, String)> {
        environment(&self.request["PrimaryContainer"]["Environment"])
    }
}

pub(super) fn environment(map: &Value) -> Vec<(String, String)> {
    let map = map.as_object().into_iter().flatten();
    map.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

pub(super) fn no_such_model(name: &str) -> Refusal {
    Refusal::validation(&format!("Could not find model \"{}\".", arn("model", name)))
}

impl Shared {
    pub(super) fn create_model(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "ModelName");
        let container = &request["PrimaryContainer"];
        let image = text(container, "Image");
        if !image.contains(".dkr.ecr.") {
            return Err(Refusal::validation(&format!(
                "Using non-ECR image \"{image}\" without Vpc repository access mode is not supported."
            )));
        }
        let role = text(request, "ExecutionRoleArn");
        if !role.starts_with(&format!("arn:aws:iam::{ACCOUNT}:")) {
            return Err(Refusal::validation("RoleArn: Cross-account pass role is not allowed."));
        }
        let archive = text(container, "ModelDataUrl");
        let readable = Place::parse(archive).is_some_and(|place| {
            self.objects.list(&place).is_ok_and(|listed| listed.iter().any(|object| object.key == place.key))
        });
        if !readable {
            return Err(Refusal::validation(&format!(
                "Could not access model data at {archive}. Please ensure that the role \"{role}\" exists and that its \
                 trust relationship policy allows the action \"sts:AssumeRole\" for the service principal \
                 \"sagemaker.amazonaws.com\". Also ensure that the role has \
                 \"s3:GetObject\" permissions and that the object is located in {REGION}."
            )));
        }
        self.change(|world| {
            let arn = arn("model", name);
            if world.models.contains_key(name) {
                return Err(Refusal::validation(&format!("Cannot create already existing model \"{arn}\".")));
            }
            let birth = world.birth();
            let mut kept = request.clone();
            kept.as_object_mut().unwrap().remove("Tags");
            world.models.insert(name.to_owned(), Model { request: kept, birth });
            tag(world, &arn, request);
            Ok(json!({"ModelArn": arn}))
        })
    }

    /// Adds a model of two chained containers, as made by other tools.
    pub(super) fn add_chain(&self, name: &str) {
        let container = json!({"Image": super::IMAGE, "ModelDataUrl": "s3://models/model.tar.gz"});
        let request = json!({
            "ModelName": name,
            "Containers": [container.clone(), container],
            "ExecutionRoleArn": super::ROLE,
        });
        self.change(|world| {
            let birth = world.birth();
            world.models.insert(name.to_owned(), Model { request, birth });
        });
    }

    pub(super) fn describe_model(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "ModelName");
        let world = self.world();
        let model = world.models.get(name).ok_or_else(|| no_such_model(name))?;
        let mut response = model.request.clone();
        response["ModelArn"] = arn("model", name).into();
        response["CreationTime"] = model.birth.at_s.into();
        if response["EnableNetworkIsolation"].is_null() {
            response["EnableNetworkIsolation"] = false.into();
        }
        Ok(response)
    }

    pub(super) fn delete_model(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "ModelName");
        self.change(|world| {
            world.models.remove(name).ok_or_else(|| no_such_model(name))?;
            world.tags.remove(&arn("model", name));
            Ok(Value::Null)
        })
    }

    pub(super) fn list_models(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let rows = world.models.iter().map(|(name, model)| Row {
            name: name.clone(),
            birth: model.birth,
            changed_s: model.birth.at_s,
            status: "",
            summary: json!({"ModelName": name, "ModelArn": arn("model", name), "CreationTime": model.birth.at_s}),
        });
        let (list, next) = page(rows.collect(), request)?;
        Ok(listing("Models", list, next))
    }
}
