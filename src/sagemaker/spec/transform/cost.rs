//! The cost of a job: instance types, and prices, which come from the user, each with its source and date; none is ever
//! guessed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TransformStatus;
use crate::domain::human_duration;

/// A figure published by AWS: “100,000 images in 12 minutes on 2 ml.p3.2xlarge”.
pub const HEADLINE: &str = "AWS reports 100,000 images in 12 minutes on 2 ml.p3.2xlarge";

/// The hourly price of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// `ml.m5.xlarge`
    pub instance_type: String,
    /// `None`: every region that no other entry names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    pub usd_per_hour: f64,
    /// Where the price comes from: an address, an invoice, a person.
    pub source: String,
    /// The date of the lookup: `2026-11-21`.
    pub date: String,
}

/// A change to an entry of the price table.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceChange {
    /// The entry as it is in the price table.
    pub from: Price,
    pub to: Price,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    #[serde(default, rename = "price")]
    pub prices: Vec<Price>,
}

impl PriceTable {
    /// The price of an instance type in a region, or else the one for all regions. The last matching entry wins, so a
    /// newer price is simply appended.
    pub fn find(&self, instance_type: &str, region: Option<&str>) -> Option<&Price> {
        let last_of = |region: Option<&str>| {
            let mut newest_first = self.prices.iter().rev();
            newest_first.find(|price| price.instance_type == instance_type && price.region.as_deref() == region)
        };
        region.and_then(|region| last_of(Some(region))).or_else(|| last_of(None))
    }
}

/// The estimated time and cost of a job at a measured or given rate.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEstimate {
    pub images: u64,
    /// Images per second on each instance.
    pub images_per_s: f64,
    pub instances: u32,
    /// The duration of the transform; each instance is billed for it.
    pub seconds: f64,
    /// `None` if no price is known.
    pub usd: Option<f64>,
}

impl CostEstimate {
    /// `None` for a rate of 0.
    pub fn new(images: u64, images_per_s: f64, instances: u32, usd_per_hour: Option<f64>) -> Option<Self> {
        let all_per_s = images_per_s * f64::from(instances);
        if !all_per_s.is_finite() || all_per_s <= 0.0 {
            return None;
        }
        let seconds = images as f64 / all_per_s;
        Some(Self {
            images,
            images_per_s,
            instances,
            seconds,
            usd: usd_per_hour.map(|price| cost_usd(price, instances, seconds)),
        })
    }
}

/// The cost of instances that are all billed for the whole time.
pub fn cost_usd(usd_per_hour: f64, instances: u32, seconds: f64) -> f64 {
    usd_per_hour * f64::from(instances) * seconds / 3600.0
}

/// `$0.012`, `$3.40`, `$1,234`: with meaningful digits only.
pub fn human_usd(usd: f64) -> String {
    if usd < 0.1 {
        format!("${usd:.3}")
    } else if usd < 1000.0 {
        format!("${usd:.2}")
    } else {
        format!("${usd:.0}")
    }
}

/// “12 min 3 s of 2 × ml.m5.xlarge so far, $0.08”
pub fn billed_text(
    (instance_type, count): (&str, u32),
    status: TransformStatus,
    billed_s: Option<f64>,
    cost_usd: Option<f64>,
) -> String {
    let so_far = if status.is_over() { "" } else { " so far" };
    let cost = cost_usd.map_or_else(|| "price unknown".to_owned(), human_usd);
    match billed_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(time) => format!("{} of {count} × {instance_type}{so_far}, {cost}", human_duration(time)),
        None if status.is_over() => format!("not reported by SageMaker, for {count} × {instance_type}"),
        None => format!("nothing yet, for {count} × {instance_type}"),
    }
}

/// The sizes by family of SageMaker's `TransformInstanceType` (botocore 1.44.5).
const FAMILIES: &[(&str, &str)] = &[
    ("m4", "xlarge 2xlarge 4xlarge 10xlarge 16xlarge"),
    ("c4", "xlarge 2xlarge 4xlarge 8xlarge"),
    ("p2", "xlarge 8xlarge 16xlarge"),
    ("p3", "2xlarge 8xlarge 16xlarge"),
    ("c5", "xlarge 2xlarge 4xlarge 9xlarge 18xlarge"),
    ("m5", "large xlarge 2xlarge 4xlarge 12xlarge 24xlarge"),
    ("m6i", SIXTH),
    ("c6i", SIXTH),
    ("r6i", SIXTH),
    ("m7i", SEVENTH),
    ("c7i", SEVENTH),
    ("r7i", SEVENTH),
    ("g4dn", "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"),
    ("g5", GRAPHICS),
    ("g6", GRAPHICS),
    ("g6e", GRAPHICS),
    ("trn1", "2xlarge 32xlarge"),
    ("inf2", "xlarge 8xlarge 24xlarge 48xlarge"),
];
const SIXTH: &str = "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge";
const SEVENTH: &str = "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge";
const GRAPHICS: &str = "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge";

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
        self.known_sizes().is_some_and(|sizes| sizes.split(' ').any(|size| size == self.size))
    }

    /// The sizes of its family, with spaces between them; `None` for a family that this version does not know.
    pub fn known_sizes(&self) -> Option<&'static str> {
        let known = FAMILIES.iter().find(|(family, _)| *family == self.family);
        known.map(|(_, sizes)| *sizes)
    }

    /// Whether it has a GPU with CUDA.
    pub fn has_gpu(&self) -> bool {
        self.family.starts_with('p') || self.family.starts_with('g')
    }

    /// Whether its CPU is AWS's own Graviton, which runs only ARM containers: `m6g`, `c7gn`, `r8g`.
    pub fn is_arm(&self) -> bool {
        self.attributes().is_some_and(|attributes| attributes.starts_with('g'))
    }

    /// The letters after the generation: `dn` of `g4dn`.
    fn attributes(&self) -> Option<&str> {
        let generation = self.family.find(|c: char| c.is_ascii_digit())?;
        Some(self.family[generation..].trim_start_matches(|c: char| c.is_ascii_digit()))
    }

    /// Whether it has local disks, which the hardware encrypts: `m5d`, `g4dn`, `g5`, `p5`, `trn1` (the “instance store
    /// volumes” in Amazon EC2's list of instance types).
    pub fn has_local_disks(&self) -> bool {
        const WITHOUT_THE_LETTER: [&str; 5] = ["g5", "g6", "gr6", "p5", "trn"];
        let is_listed = WITHOUT_THE_LETTER.iter().any(|family| self.family.starts_with(family));
        let has_letter = self.attributes().is_some_and(|attributes| attributes.contains('d'));
        has_letter || (is_listed && !self.is_arm())
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
    FAMILIES.iter().flat_map(|(family, sizes)| sizes.split(' ').map(move |size| format!("ml.{family}.{size}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(instance_type: &str, region: Option<&str>, usd_per_hour: f64) -> Price {
        Price {
            instance_type: instance_type.to_owned(),
            region: region.map(str::to_owned),
            usd_per_hour,
            source: "an invoice".to_owned(),
            date: "2026-11-21".to_owned(),
        }
    }

    #[test]
    fn price_is_regional_or_general() {
        let table = PriceTable {
            prices: vec![
                price("ml.m5.xlarge", None, 0.2),
                price("ml.m5.xlarge", Some("eu-west-1"), 0.3),
                price("ml.m5.xlarge", Some("eu-west-1"), 0.4),
            ],
        };
        let find = |name, region| Some(table.find(name, region)?.usd_per_hour);
        assert_eq!(find("ml.m5.xlarge", Some("eu-west-1")), Some(0.4));
        assert_eq!(find("ml.m5.xlarge", Some("us-east-1")), Some(0.2));
        assert_eq!(find("ml.m5.xlarge", None), Some(0.2));
        assert_eq!(find("ml.g5.xlarge", None), None);
    }

    #[test]
    fn estimate_bills_all_instances_for_the_whole_time() {
        // The rate of the headline.
        let images_per_s = 100_000.0 / (12.0 * 60.0 * 2.0);
        let estimate = CostEstimate::new(100_000, images_per_s, 2, Some(4.0)).unwrap();
        assert!((estimate.seconds - 720.0).abs() < 1e-6, "{estimate:?}");
        // 2 instances, 0.2 hours, $4 per hour.
        assert!((estimate.usd.unwrap() - 1.6).abs() < 1e-9, "{estimate:?}");
        assert_eq!(CostEstimate::new(10, 1.0, 1, None).unwrap().usd, None);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(CostEstimate::new(10, rate, 1, None), None, "{rate}");
        }
    }

    #[test]
    fn money_has_relevant_digits() {
        for (usd, expected) in [(0.0123, "$0.012"), (3.4, "$3.40"), (1234.4, "$1234")] {
            assert_eq!(human_usd(usd), expected);
        }
    }

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
