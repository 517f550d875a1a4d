//! Real-time endpoints and their configurations.

use std::sync::{Arc, MutexGuard};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::container::{Container, Sink, Trouble};
use super::models::no_such_model;
use super::objects::Place;
use super::tags::tag;
use super::world::{Birth, Pace, Row, World, listing, page};
use super::{Refusal, Shared, arn, seconds, text};

pub(super) struct EndpointConfig {
    request: Value,
    birth: Birth,
}

pub(super) struct Endpoint {
    pub(super) status: &'static str,
    /// Of the first variant.
    pub(super) container: Option<Arc<Container>>,
    config: String,
    /// Copied when the endpoint is created, because the configuration may be deleted.
    pub(super) variants: Value,
    image: String,
    failure: Option<String>,
    birth: Birth,
    changed_s: f64,
}

fn no_such_config(name: &str) -> Refusal {
    Refusal::validation(&format!("Could not find endpoint configuration \"{}\".", arn("endpoint-config", name)))
}

fn no_such_endpoint(name: &str) -> Refusal {
    Refusal::validation(&format!("Could not find endpoint \"{}\".", arn("endpoint", name)))
}

impl Shared {
    pub(super) fn create_endpoint_config(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "EndpointConfigName");
        let arn = arn("endpoint-config", name);
        self.change(|world| {
            for variant in request["ProductionVariants"].as_array().into_iter().flatten() {
                let model = text(variant, "ModelName");
                if !world.models.contains_key(model) {
                    return Err(no_such_model(model));
                }
            }
            if world.configs.contains_key(name) {
                return Err(Refusal::validation(&format!(
                    "Cannot create already existing endpoint configuration \"{arn}\"."
                )));
            }
            let birth = world.birth();
            let mut kept = request.clone();
            kept.as_object_mut().unwrap().remove("Tags");
            world.configs.insert(name.to_owned(), EndpointConfig { request: kept, birth });
            tag(world, &arn, request);
            Ok(json!({"EndpointConfigArn": arn}))
        })
    }

    pub(super) fn describe_endpoint_config(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "EndpointConfigName");
        let world = self.world();
        let config = world.configs.get(name).ok_or_else(|| no_such_config(name))?;
        let mut response = config.request.clone();
        response["EndpointConfigArn"] = arn("endpoint-config", name).into();
        response["CreationTime"] = config.birth.at_s.into();
        response["EnableNetworkIsolation"] = false.into();
        for variant in response["ProductionVariants"].as_array_mut().into_iter().flatten() {
            if variant["InitialVariantWeight"].is_null() {
                variant["InitialVariantWeight"] = 1.0.into();
            }
        }
        Ok(response)
    }

    pub(super) fn delete_endpoint_config(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "EndpointConfigName");
        self.change(|world| {
            world.configs.remove(name).ok_or_else(|| no_such_config(name))?;
            world.tags.remove(&arn("endpoint-config", name));
            Ok(Value::Null)
        })
    }

    pub(super) fn list_endpoint_configs(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let rows = world.configs.iter().map(|(name, config)| Row {
            name: name.clone(),
            birth: config.birth,
            changed_s: config.birth.at_s,
            status: "",
            summary: json!({
                "EndpointConfigName": name,
                "EndpointConfigArn": arn("endpoint-config", name),
                "CreationTime": config.birth.at_s,
            }),
        });
        let (list, next) = page(rows.collect(), request)?;
        Ok(listing("EndpointConfigs", list, next))
    }

    pub(super) fn create_endpoint(self: &Arc<Self>, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "EndpointName").to_owned();
        let config_name = text(request, "EndpointConfigName");
        let arn = arn("endpoint", &name);
        let usage = {
            let world = self.world();
            let config = world.configs.get(config_name).ok_or_else(|| no_such_config(config_name))?;
            let variant = &config.request["ProductionVariants"][0];
            (text(variant, "InstanceType").to_owned(), variant["InitialInstanceCount"].to_string())
        };
        self.failures.lock().unwrap().limit(&usage.0, &usage.1, "endpoint usage")?;
        self.change(|world| {
            let config = world.configs.get(config_name).ok_or_else(|| no_such_config(config_name))?;
            let variants = config.request["ProductionVariants"].clone();
            let model = text(&variants[0], "ModelName");
            let image = world.models.get(model).ok_or_else(|| no_such_model(model))?.image().to_owned();
            if world.endpoints.contains_key(&name) {
                return Err(Refusal::validation(&format!("Cannot create already existing endpoint \"{arn}\".")));
            }
            let birth = world.birth();
            world.endpoints.insert(
                name.clone(),
                Endpoint {
                    status: "Creating",
                    container: None,
                    config: config_name.to_owned(),
                    variants,
                    image,
                    failure: None,
                    birth,
                    changed_s: birth.at_s,
                },
            );
            tag(world, &arn, request);
            Ok(())
        })?;
        let plane = Arc::clone(self);
        std::thread::spawn(move || {
            let outcome = plane.deploy(&name);
            plane.change(|world| {
                // Deleted meanwhile, so the container is no longer needed.
                let Some(endpoint) = world.endpoints.get_mut(&name) else {
                    return;
                };
                endpoint.changed_s = seconds(SystemTime::now());
                match outcome {
                    Ok(container) => {
                        endpoint.status = "InService";
                        endpoint.container = Some(Arc::new(container));
                    }
                    Err(reason) => {
                        endpoint.status = "Failed";
                        endpoint.failure = Some(reason);
                    }
                }
            });
        });
        Ok(json!({"EndpointArn": arn}))
    }

    fn wait_while_held(&self) -> MutexGuard<'_, World> {
        let mut world = self.world();
        while world.pace == Pace::Held && !world.closing {
            world = self.changed.wait(world).unwrap();
        }
        world
    }

    /// The container, or why there is none.
    fn deploy(self: &Arc<Self>, name: &str) -> Result<Container, String> {
        let (archive, variables, variant) = {
            let world = self.wait_while_held();
            let Some(endpoint) = world.endpoints.get(name) else {
                return Err("deleted".to_owned());
            };
            let variant = &endpoint.variants[0];
            let Some(model) = world.models.get(text(variant, "ModelName")) else {
                return Err("The model was deleted before the endpoint was created.".to_owned());
            };
            (model.archive().to_owned(), model.environment(), text(variant, "VariantName").to_owned())
        };
        let archive = Place::parse(&archive).unwrap();
        let archive = self.objects.get(&archive).map_err(|code| {
            format!(
                "Failed to download model data for container \"container_1\" from URL: \"s3://{}/{}\": {code}",
                archive.bucket, archive.key
            )
        })?;
        let group = format!("/aws/sagemaker/Endpoints/{name}");
        let stream = format!("{variant}/i-00000000000000001");
        self.change(|world| world.logs.open(&group, &stream));
        let sink: Sink = Arc::new(move |shared, line| {
            shared.change(|world| world.logs.write(&group, &stream, line));
        });
        Container::start(self, &arn("endpoint", name), &archive, &variables, &sink).map_err(|trouble| match trouble {
            Trouble::Archive(error) => {
                format!("Failed to extract model data archive for container \"container_1\": {error}")
            }
            Trouble::Ended | Trouble::NoPing => format!(
                "The primary container for production variant {variant} did not pass the ping health check. \
                 Please check CloudWatch logs for this endpoint."
            ),
        })
    }

    pub(super) fn describe_endpoint(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "EndpointName");
        let world = self.world();
        let endpoint = world.endpoints.get(name).ok_or_else(|| no_such_endpoint(name))?;
        let mut response = json!({
            "EndpointName": name,
            "EndpointArn": arn("endpoint", name),
            "EndpointConfigName": endpoint.config,
            "EndpointStatus": endpoint.status,
            "CreationTime": endpoint.birth.at_s,
            "LastModifiedTime": endpoint.changed_s,
        });
        if endpoint.status == "InService" {
            let variants = endpoint.variants.as_array().into_iter().flatten();
            let variants: Vec<_> = variants
                .map(|variant| {
                    let mut described = json!({
                        "VariantName": variant["VariantName"],
                        "DeployedImages": [{
                            "SpecifiedImage": endpoint.image,
                            "ResolvedImage": endpoint.image,
                            "ResolutionTime": endpoint.birth.at_s,
                        }],
                        "CurrentWeight": 1.0, "DesiredWeight": 1.0,
                    });
                    let (size, fields) = match &variant["ServerlessConfig"] {
                        Value::Null => {
                            (&variant["InitialInstanceCount"], ["CurrentInstanceCount", "DesiredInstanceCount"])
                        }
                        serverless => (serverless, ["CurrentServerlessConfig", "DesiredServerlessConfig"]),
                    };
                    for field in fields {
                        described[field] = size.clone();
                    }
                    described
                })
                .collect();
            response["ProductionVariants"] = variants.into();
        }
        if let Some(failure) = &endpoint.failure {
            response["FailureReason"] = failure.clone().into();
        }
        Ok(response)
    }

    pub(super) fn list_endpoints(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let rows = world.endpoints.iter().map(|(name, endpoint)| Row {
            name: name.clone(),
            birth: endpoint.birth,
            changed_s: endpoint.changed_s,
            status: endpoint.status,
            summary: json!({
                "EndpointName": name, "EndpointArn": arn("endpoint", name), "EndpointStatus": endpoint.status,
                "CreationTime": endpoint.birth.at_s, "LastModifiedTime": endpoint.changed_s,
            }),
        });
        let (list, next) = page(rows.collect(), request)?;
        Ok(listing("Endpoints", list, next))
    }

    /// Deletes an endpoint, which is "Deleting" until its container has exited and while jobs are held.
    pub(super) fn delete_endpoint(self: &Arc<Self>, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "EndpointName").to_owned();
        let container = self.change(|world| {
            let endpoint = world.endpoints.get_mut(&name).ok_or_else(|| no_such_endpoint(&name))?;
            endpoint.status = "Deleting";
            Ok(endpoint.container.take())
        })?;
        let plane = Arc::clone(self);
        std::thread::spawn(move || {
            drop(container);
            drop(plane.wait_while_held());
            plane.change(|world| {
                world.endpoints.remove(&name);
                world.tags.remove(&arn("endpoint", &name));
            });
        });
        Ok(Value::Null)
    }
}
