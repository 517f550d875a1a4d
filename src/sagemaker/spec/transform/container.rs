//! AWS's containers that can run our archives, per region.

use super::InstanceType;

/// AWS's Ray Serve container, the primary target of our archives.
const RAY_REPOSITORY: &str = "ray";
/// AWS's container for TensorFlow Serving.
const TENSORFLOW_REPOSITORY: &str = "tensorflow-inference";
const TENSORFLOW_CPU_TAG: &str = "2.19.0-cpu";
const TENSORFLOW_GPU_TAG: &str = "2.19.0-gpu";
/// AWS's PyTorch container, which also runs the Python code in our archives.
const PYTORCH_REPOSITORY: &str = "pytorch-inference";
const PYTORCH_CPU_TAG: &str = "2.6.0-cpu-py312-ubuntu22.04-sagemaker";
const PYTORCH_GPU_TAG: &str = "2.6.0-gpu-py312-cu124-ubuntu22.04-sagemaker";
const RAY_CPU_TAG: &str = "serve-ml-sagemaker-cpu-v1.4";
const RAY_CUDA_TAG: &str = "serve-ml-sagemaker-cuda-v1.4";
/// The account of AWS's deep learning containers in most regions.
const DLC_ACCOUNT: &str = "763104351884";
/// The accounts of the other regions.
const ACCOUNTS: &[(&str, &str)] = &[
    ("af-south-1", "626614931356"),
    ("ap-east-1", "871362719292"),
    ("me-south-1", "217643126080"),
    ("eu-south-1", "692866216735"),
];
const CHINA_ACCOUNT: &str = "727897471807";

/// What an archive contains, which determines the containers that can serve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveContent {
    /// What Spotcheck packs from a model card: an ONNX file and a Python handler.
    Onnx,
    /// For TensorFlow Serving: `1/saved_model.pb`, and possibly a handler.
    SavedModel,
}

/// The purpose of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerUse {
    Training,
    Serving,
}

impl ArchiveContent {
    /// “an ONNX model with its handler”
    pub fn words(self) -> &'static str {
        match self {
            Self::Onnx => "an ONNX model with its handler",
            Self::SavedModel => "a TensorFlow SavedModel",
        }
    }
}

/// AWS's container for an archive with this content in a region, for an instance with or without a GPU.
pub fn default_image(region: &str, instance_type: &str, content: ArchiveContent) -> String {
    let has_gpu = InstanceType::parse(instance_type).is_some_and(|instance| instance.has_gpu());
    let (repository, tag) = match (content, has_gpu) {
        (ArchiveContent::Onnx, false) => (RAY_REPOSITORY, RAY_CPU_TAG),
        (ArchiveContent::Onnx, true) => (RAY_REPOSITORY, RAY_CUDA_TAG),
        (ArchiveContent::SavedModel, false) => (TENSORFLOW_REPOSITORY, TENSORFLOW_CPU_TAG),
        (ArchiveContent::SavedModel, true) => (TENSORFLOW_REPOSITORY, TENSORFLOW_GPU_TAG),
    };
    let (account, suffix) = if region.starts_with("cn-") {
        (CHINA_ACCOUNT, ".cn")
    } else {
        let special = ACCOUNTS.iter().find(|(name, _)| *name == region);
        (special.map_or(DLC_ACCOUNT, |(_, account)| account), "")
    };
    format!("{account}.dkr.ecr.{region}.amazonaws.com{suffix}/{repository}:{tag}")
}

/// AWS's containers that serve Spotcheck's archives, for a region and an instance: URI and purpose. The first is the
/// default for an ONNX model, the last for a TensorFlow `SavedModel`.
pub fn known_images(region: &str, instance_type: &str) -> [(String, &'static str); 3] {
    let has_gpu = InstanceType::parse(instance_type).is_some_and(|instance| instance.has_gpu());
    let ray = default_image(region, instance_type, ArchiveContent::Onnx);
    let tensorflow = default_image(region, instance_type, ArchiveContent::SavedModel);
    let registry = ray.split('/').next().unwrap_or_default();
    let tag = if has_gpu { PYTORCH_GPU_TAG } else { PYTORCH_CPU_TAG };
    let pytorch = format!("{registry}/{PYTORCH_REPOSITORY}:{tag}");
    [
        (ray, "Ray Serve, for models that Spotcheck packs"),
        (pytorch, "PyTorch, for models that Spotcheck packs; no patches since June 2026"),
        (tensorflow, "TensorFlow Serving, for SavedModels; no patches since March 2026"),
    ]
}

/// The parts of the URI of a container in ECR: `<account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EcrImage<'i> {
    pub account: &'i str,
    pub region: &'i str,
    /// `ray:serve-ml-sagemaker-cpu-v1.4`
    pub name: &'i str,
}

impl<'i> EcrImage<'i> {
    /// `None` if the URI is not in ECR.
    pub fn parse(uri: &'i str) -> Option<Self> {
        let (host, name) = uri.split_once('/')?;
        let (account, rest) = host.split_once(".dkr.ecr.")?;
        let (region, domain) = rest.split_once('.')?;
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_account && !region.is_empty() && !domain.is_empty() && !name.is_empty();
        fits.then_some(Self { account, region, name })
    }

    /// Whether it needs a GPU, judging by its name; `None` if the name does not tell.
    pub fn needs_gpu(&self) -> Option<bool> {
        let name = self.name.to_ascii_lowercase();
        if name.contains("-gpu") || name.contains("-cuda") {
            Some(true)
        } else if name.contains("-cpu") {
            Some(false)
        } else {
            None
        }
    }

    /// The purpose of a container of AWS; `None` for others.
    pub fn purpose(&self) -> Option<ContainerUse> {
        let is_of_aws = [DLC_ACCOUNT, CHINA_ACCOUNT].contains(&self.account)
            || ACCOUNTS.iter().any(|(_, account)| *account == self.account);
        let repository = self.repository();
        match repository.rsplit_once('-').map_or(repository, |(_, end)| end) {
            "training" if is_of_aws => Some(ContainerUse::Training),
            "inference" | RAY_REPOSITORY if is_of_aws => Some(ContainerUse::Serving),
            _ => None,
        }
    }

    fn repository(&self) -> &'i str {
        self.name.split([':', '@']).next().unwrap_or_default()
    }

    /// Whether it can serve such an archive; `None` if unknown.
    pub fn serves(&self, content: ArchiveContent) -> Option<bool> {
        match self.repository() {
            RAY_REPOSITORY | PYTORCH_REPOSITORY => Some(content == ArchiveContent::Onnx),
            TENSORFLOW_REPOSITORY => Some(content == ArchiveContent::SavedModel),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_follows_region_and_instance() {
        for (region, instance, expected) in [
            (
                "eu-west-1",
                "ml.m5.xlarge",
                "763104351884.dkr.ecr.eu-west-1.amazonaws.com/ray:serve-ml-sagemaker-cpu-v1.4",
            ),
            (
                "ap-east-1",
                "ml.g5.xlarge",
                "871362719292.dkr.ecr.ap-east-1.amazonaws.com/ray:serve-ml-sagemaker-cuda-v1.4",
            ),
            (
                "cn-north-1",
                "ml.p3.2xlarge",
                "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/ray:serve-ml-sagemaker-cuda-v1.4",
            ),
        ] {
            let image = default_image(region, instance, ArchiveContent::Onnx);
            assert_eq!(image, expected);
            let parsed = EcrImage::parse(&image).unwrap();
            assert_eq!(parsed.region, region);
            assert_eq!(parsed.needs_gpu(), Some(instance != "ml.m5.xlarge"));
        }
        assert_eq!(EcrImage::parse("docker.io/library/python"), None);
    }

    #[test]
    fn known_containers_match_their_region() {
        for instance in ["ml.m5.xlarge", "ml.g5.xlarge"] {
            let images = known_images("eu-west-1", instance);
            let served = images.each_ref().map(|(uri, _)| {
                let image = EcrImage::parse(uri).unwrap();
                assert_eq!(image.region, "eu-west-1");
                assert_eq!(image.needs_gpu(), Some(instance == "ml.g5.xlarge"));
                image.serves(ArchiveContent::Onnx)
            });
            assert_eq!(served, [Some(true), Some(true), Some(false)]);
        }
    }

    #[test]
    fn container_serves_its_models() {
        for content in [ArchiveContent::Onnx, ArchiveContent::SavedModel] {
            for instance in ["ml.m5.xlarge", "ml.g5.xlarge"] {
                let image = default_image("eu-west-1", instance, content);
                let image = EcrImage::parse(&image).unwrap();
                assert_eq!(image.serves(content), Some(true), "{image:?}");
                assert_eq!(image.needs_gpu(), Some(instance == "ml.g5.xlarge"));
            }
        }
        let of = |name: &str| format!("763104351884.dkr.ecr.eu-west-1.amazonaws.com/{name}");
        let serves = |name: &str, content| {
            let image = of(name);
            EcrImage::parse(&image).unwrap().serves(content)
        };
        let tensorflow = "tensorflow-inference:2.19.0-cpu";
        assert_eq!(serves(tensorflow, ArchiveContent::Onnx), Some(false));
        let ray = "ray@sha256:00";
        assert_eq!(serves(ray, ArchiveContent::SavedModel), Some(false));
        assert_eq!(serves("of-our-own:1", ArchiveContent::Onnx), None);
    }

    #[test]
    fn purpose_of_aws_containers_is_known() {
        for (account, name, expected) in [
            ("763104351884", "tensorflow-training:2.19.0-cpu-py312", Some(ContainerUse::Training)),
            ("871362719292", "huggingface-pytorch-training@sha256:00", Some(ContainerUse::Training)),
            ("763104351884", "pytorch-inference:2.6.0-cpu", Some(ContainerUse::Serving)),
            ("763104351884", "ray:serve-ml-sagemaker-cpu-v1.4", Some(ContainerUse::Serving)),
            ("763104351884", "djl-serving:1", None),
            ("123456789012", "cats-training:1", None),
        ] {
            let image = format!("{account}.dkr.ecr.eu-west-1.amazonaws.com/{name}");
            assert_eq!(EcrImage::parse(&image).unwrap().purpose(), expected, "{image}");
        }
    }
}
