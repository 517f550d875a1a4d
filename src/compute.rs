//! What works on pixels, scores and boxes, without networks, projects or ONNX Runtime: a package of its own, so that it
//! alone is optimized for speed, whatever the profile.

pub mod alike;
pub mod annotations {
    pub mod matching;
}
pub mod cache;
pub mod domain;
pub mod evaluation;
pub mod image {
    pub mod decode;
}
pub mod model;
pub mod review;
pub mod tasks;
