//! Which of several stacked tensors an output is computed from: a DETR can stack the results of all its decoder layers,
//! and return the last.

use std::collections::BTreeMap;

use super::signature::{GraphNode, Integers};

/// These compute each value from those at the same position.
const ELEMENTWISE: [&str; 30] = [
    "Abs",
    "Add",
    "Cast",
    "Clip",
    "DequantizeLinear",
    "Div",
    "Dropout",
    "Exp",
    "HardSigmoid",
    "Identity",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Pow",
    "QuantizeLinear",
    "Reciprocal",
    "Relu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Sqrt",
    "Sub",
    "Tanh",
    "TopK",
    "Where",
];

/// The values at one index along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    axis: usize,
    /// From the end if negative.
    index: i64,
}

impl Pick {
    /// The name and shape of this part of a stack of tensors with a vector per query, `[layers, images, queries, dims]`
    /// or with the first two swapped; `None` for all other shapes, whose last axes are computed anew by each layer.
    pub(super) fn in_stack(self, tensor: &str, shape: &[usize]) -> Option<(String, Vec<usize>)> {
        let size = i64::try_from(*shape.get(self.axis)?).ok()?;
        let is_stack = shape.len() == 4 && self.axis < 2 && (-size..size).contains(&self.index);
        let rest = shape.iter().enumerate().filter(|(axis, _)| *axis != self.axis).map(|(_, size)| *size);
        is_stack.then(|| (format!("{tensor}[{}{}]", ":, ".repeat(self.axis), self.index), rest.collect()))
    }

    /// The tensor and the part of it that a name as `hs[-1]` or `hs[:, -1]` means.
    pub(super) fn parse(name: &str) -> Option<(&str, Self)> {
        let (tensor, place) = name.strip_suffix(']')?.rsplit_once('[')?;
        let (axis, index) = place.strip_prefix(":, ").map_or((0, place), |index| (1, index));
        Some((tensor, Self { axis, index: index.parse().ok()? }))
    }

    pub(super) fn axis(self) -> usize {
        self.axis
    }

    pub(super) fn index(self) -> i64 {
        self.index
    }
}

/// What of a tensor reaches the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    One(Pick),
    /// An unknown part.
    Some,
}

impl Part {
    pub(super) fn pick(self) -> Option<Pick> {
        if let Self::One(pick) = self { Some(pick) } else { None }
    }

    /// What of the inputs of `node` reaches the scores if this part of its output does. Not for `Concat`.
    pub(super) fn before(self, node: &GraphNode, integers: &BTreeMap<String, Integers>) -> Self {
        let input = |at: usize| node.inputs.get(at).and_then(|name| integers.get(name));
        let axes = || node.attributes.get("axes").or_else(|| input(1)).and_then(positive);
        let axis = node.attributes.get("axis").map_or(Some(0), |axis| positive(axis)?.first().copied());
        let keeps_axes = || node.attributes.get("keepdims").is_none_or(|keeps| keeps.values != [0]);
        match node.op.as_str() {
            "Gather" => match (input(1).map(|index| index.values.as_slice()), axis) {
                (Some(&[index]), Some(axis)) => Self::One(Pick { axis, index }),
                (Some([_]), None) => Self::Some,
                _ => self.lost(),
            },
            "Slice" => {
                let [starts, ends, axes] = [input(1), input(2), input(3).or(node.attributes.get("axes"))];
                self.sliced(starts, ends, axes.and_then(positive).as_deref())
            }
            op if ELEMENTWISE.contains(&op) => self,
            "Transpose" => {
                let axes = node.attributes.get("perm").and_then(positive);
                self.moved(|axis| axes.as_ref()?.get(axis).copied())
            }
            "Squeeze" => match axes() {
                Some(removed) => self.moved(|axis| Some(insert(axis, &removed))),
                None => self.lost(),
            },
            "Unsqueeze" => match (self, axes()) {
                (Self::One(pick), Some(added)) if added.contains(&pick.axis) => Self::All,
                (_, Some(added)) => self.moved(|axis| Some(axis - added.iter().filter(|added| **added < axis).count())),
                (_, None) => self.lost(),
            },
            "ReduceMax" | "ReduceMean" | "ReduceSum" if keeps_axes() => self,
            "ReduceMax" | "ReduceMean" | "ReduceSum" => {
                let last = [-1];
                let is_last = node.attributes.get("axes").or_else(|| input(1)).is_some_and(|axes| axes.values == last);
                match (is_last, axes()) {
                    (true, _) => self,
                    (false, Some(removed)) => self.moved(|axis| Some(insert(axis, &removed))),
                    (false, None) => self.lost(),
                }
            }
            _ => self.lost(),
        }
    }

    /// The inputs of a `Concat` that reach the scores, with their part; `None` if they are unknown, as perhaps only one of
    /// them does.
    pub(super) fn before_concat<'g>(
        self,
        concat: &'g GraphNode,
        maker_of: &BTreeMap<&str, &GraphNode>,
        integers: &BTreeMap<String, Integers>,
    ) -> Option<(Vec<&'g str>, Self)> {
        let all = concat.inputs.iter().map(String::as_str).collect();
        let axis = concat.attributes.get("axis").and_then(positive).and_then(|axis| axis.first().copied());
        let Self::One(pick) = self else {
            return (self == Self::All).then_some((all, self));
        };
        if axis? != pick.axis {
            return Some((all, self));
        }
        // Otherwise, an input can have more than one index along this axis.
        let adds_axis = |input: &&str| {
            maker_of.get(input).is_some_and(|node| {
                let axes = node.attributes.get("axes").or_else(|| integers.get(node.inputs.get(1)?));
                node.op == "Unsqueeze" && axes.and_then(positive) == Some(vec![pick.axis])
            })
        };
        let index = if pick.index < 0 { pick.index + all.len() as i64 } else { pick.index };
        let input = *all.get(usize::try_from(index).ok()?)?;
        all.iter().all(adds_axis).then_some((vec![input], self))
    }

    fn sliced(self, starts: Option<&Integers>, ends: Option<&Integers>, axes: Option<&[usize]>) -> Self {
        const TO_THE_END: i64 = i32::MAX as i64;
        let ends_of = |ends: &Integers| ends.values.clone();
        let (starts, ends) = (starts.map(ends_of).unwrap_or_default(), ends.map(ends_of).unwrap_or_default());
        match (starts.as_slice(), ends.as_slice(), axes, self) {
            (&[start], &[end], Some(&[axis]), _) if start + 1 == end || (start == -1 && end >= TO_THE_END) => {
                Self::One(Pick { axis, index: start })
            }
            (.., Some(axes), Self::One(pick)) if !axes.contains(&pick.axis) => self,
            _ => self.lost(),
        }
    }

    fn moved(self, axis_of: impl Fn(usize) -> Option<usize>) -> Self {
        match self {
            Self::One(pick) => axis_of(pick.axis).map_or(Self::Some, |axis| Self::One(Pick { axis, ..pick })),
            Self::All | Self::Some => self,
        }
    }

    fn lost(self) -> Self {
        if self == Self::All { Self::All } else { Self::Some }
    }
}

/// The position of an axis after these axes were added.
fn insert(axis: usize, added: &[usize]) -> usize {
    let mut added = added.to_vec();
    added.sort_unstable();
    added.into_iter().fold(axis, |axis, added| if added <= axis { axis + 1 } else { axis })
}

/// `None` if one is counted from the end.
fn positive(axes: &Integers) -> Option<Vec<usize>> {
    axes.values.iter().map(|axis| usize::try_from(*axis).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: &[i64]) -> Integers {
        Integers { values: values.to_vec(), is_scalar: false }
    }

    #[test]
    fn index_is_followed_through_moved_axes() {
        let integers = BTreeMap::from([("last".to_owned(), list(&[-1])), ("two".to_owned(), list(&[0, 1]))]);
        let from = |op: &str, input: &str, attributes: &[(&str, &[i64])], part: Part| {
            let attributes = attributes.iter().map(|(name, values)| ((*name).to_owned(), list(values))).collect();
            let inputs = vec!["data".to_owned(), input.to_owned()];
            let node = GraphNode { op: op.to_owned(), inputs, attributes, ..GraphNode::default() };
            part.before(&node, &integers)
        };
        let one = |axis, index| Part::One(Pick { axis, index });
        assert_eq!(from("Gather", "last", &[("axis", &[1])], Part::All), one(1, -1));
        assert_eq!(from("Gather", "last", &[("axis", &[-1])], Part::All), Part::Some);
        assert_eq!(from("Gather", "two", &[("axis", &[1])], one(0, 2)), Part::Some);
        assert_eq!(from("Transpose", "", &[("perm", &[2, 0, 1])], one(1, 3)), one(0, 3));
        assert_eq!(from("Unsqueeze", "", &[("axes", &[0])], one(1, 3)), one(0, 3));
        assert_eq!(from("Unsqueeze", "two", &[], one(1, 0)), Part::All);
        assert_eq!(from("Squeeze", "two", &[], one(0, 3)), one(2, 3));
        assert_eq!(from("ReduceMax", "last", &[("keepdims", &[0])], one(1, 3)), one(1, 3));
        assert_eq!(from("ReduceMax", "", &[("axes", &[1]), ("keepdims", &[0])], one(1, 3)), one(2, 3));
        assert_eq!(from("Sigmoid", "", &[], one(1, 3)), one(1, 3));
        assert_eq!(from("Reshape", "two", &[], one(1, 3)), Part::Some);
        assert_eq!(from("Reshape", "two", &[], Part::All), Part::All);
    }

    #[test]
    fn part_of_stack_has_name_that_is_read_back() {
        let pick = Pick { axis: 1, index: -1 };
        let (name, shape) = pick.in_stack("hs", &[1, 6, 100, 256]).unwrap();
        assert_eq!((name.as_str(), shape), ("hs[:, -1]", vec![1, 100, 256]));
        assert_eq!(Pick::parse(&name), Some(("hs", pick)));
        // A class of each query, and no layer.
        assert_eq!(Pick { axis: 2, index: 0 }.in_stack("hs", &[1, 6, 100, 256]), None);
        assert_eq!(Pick { axis: 0, index: 6 }.in_stack("hs", &[6, 1, 100, 256]), None);
    }
}
