"""Reads the outputs of a model as its card describes them: classes, or boxes in pixels of the upright image.

The arithmetic is the same as Spotcheck's, in the same precision. Only NumPy is needed.
"""

import numpy as np

F32 = np.float32
# No detector has more candidates.
MAX_ROWS = 1_000_000
# The maximum number of boxes per image before non-maximum suppression.
MAX_KEPT = 30_000
# The largest score, with tolerance for the rounding of 16-bit floats.
MAX_SCORE = 1.001


def ranked_classes(convention, outputs, top_k, images=1):
    """The numbers and scores of the best classes of the first of `images` images, best first."""
    # A card without a name is for a graph with one output.
    name = convention.get("name") or min(outputs)
    output = _output(outputs, name)
    values = _finite(output.astype(np.float64).ravel())
    if not len(values) or len(values) % images:
        raise RuntimeError(f"the output of shape {list(output.shape)} does not match {images} images")
    values = values[: len(values) // images]
    kind = convention["values"]
    if kind == "arg-max":
        scores = _arg_max(values)
    elif kind == "logits":
        scores = _softmax(values)
    elif kind == "sigmoid-logits":
        scores = _sigmoid(values)
    else:
        scores = values / (255 if output.dtype == np.uint8 else 1)
    if kind == "second-probability":
        scores = np.array([1 - scores[0], scores[0]])
    # Cards of earlier versions have `true` for the first class.
    background = convention.get("background")
    if background in (True, "first"):
        scores = scores[1:]
    elif background == "last":
        scores = scores[:-1]
    best = np.argsort(-scores, kind="stable")[:top_k]
    return best, scores[best]


def detections(convention, outputs, placement, min_score, images=1, index=0):
    """Boxes `[n, 4]` in pixels of the upright image, class ids `[n]` and scores `[n]`, best first: those with at least
    this score that the card's non-maximum suppression leaves of image `index` of the `images` of one call.

    `placement` has `canvas`, `scale` and `shift` of the image in the input.
    """
    parts = _Parts(convention, outputs, images, index)
    rows, classes, scores = _candidates(convention, parts)
    _finite(scores)
    if (scores > MAX_SCORE).any():
        raise RuntimeError(
            f"the model returned a score of {scores.max()}, above 1; correct the output's activation in the model card"
        )
    # Stable: equal scores keep the graph's own order. A score of 0 is padding.
    best = np.argsort(-scores, kind="stable")
    best = best[scores[best] >= max(F32(min_score), np.finfo(F32).tiny)]
    best = best[: min(MAX_KEPT, convention.get("max_boxes", MAX_KEPT))]
    rows, classes, scores = rows[best], classes[best], scores[best]
    boxes = _finite(_in_image_pixels(convention, placement, parts, rows))
    class_ids = _class_ids(classes, convention.get("class_offset", 0))
    kept = _not_suppressed(boxes, class_ids, convention.get("nms_iou"))
    return boxes[kept], class_ids[kept], scores[kept]


class _Parts:
    """The values of one image's candidates: arrays of 32-bit floats with one row each."""

    def __init__(self, convention, outputs, images, index):
        self.convention, self.outputs = convention, outputs
        self.call = (images, index)
        # The rows of all images are concatenated.
        self.of_call = (1, 0) if "batch_index" in convention else self.call
        names, column = _columns(convention["boxes"])
        self.level_rows = []
        for name in names:
            values, shape = self._values(name, self.of_call)
            width = _dimension_of_columns(shape, self.convention.get("candidates_last"))
            if not width or len(values) % width:
                raise RuntimeError(
                    f"the output {name} of shape {list(shape)} has no rows of boxes; correct the model card"
                )
            self.level_rows.append(len(values) // width)
        self.rows = sum(self.level_rows)
        if self.rows > MAX_ROWS:
            raise RuntimeError(
                f"the model returned {self.rows} candidates for one image, more than {MAX_ROWS}; export it with "
                "non-maximum suppression"
            )
        self.boxes = self.part("boxes", _numbers_per_box(convention.get("grid")))
        self.labels, self.objectness, self.batch_index, self.angle = (
            self.part(name, 1)[:, 0] if name in convention else None
            for name in ("labels", "objectness", "batch_index", "angle")
        )
        self.scores = self.part("scores", 1 if "labels" in convention else convention.get("classes"))

    def part(self, name, width):
        """Consecutive columns, `[rows, width]`; up to the last one if the width is `None`."""
        names, column = _columns(self.convention[name])
        # One output per level, or one output for the rows of all levels.
        expected = self.level_rows if len(names) == len(self.level_rows) else [self.rows]
        if len(names) != len(expected):
            raise RuntimeError(
                f"the model card names {len(self.level_rows)} outputs for boxes and {len(names)} for "
                f"{', '.join(names)}; correct it"
            )
        tables = [(name, self._table(name, rows)) for name, rows in zip(names, expected)]
        tables = [(name, table) for name, table in tables if len(table)]
        if not tables:
            return np.zeros((0, width or 0), F32)
        width = tables[0][1].shape[1] - column if width is None else width
        needed = column + max(width, 1)
        for name, table in tables:
            if table.shape[1] < needed:
                raise RuntimeError(
                    f"the model's outputs do not fit together: {name} has too few columns, {table.shape[1]} where "
                    f"{needed} are needed; correct the model card"
                )
        return np.concatenate([table[:, column : column + width] for _, table in tables])

    def valid(self):
        """The rows that count, in the graph's order."""
        count = self.rows
        if self.convention.get("count"):
            counted, _ = self._values(self.convention["count"], self.call)
            if len(counted) != 1 or not 0 <= counted[0] <= count:
                raise RuntimeError(f"the model returned {count} boxes but a count of {counted[:8].tolist()}")
            count = int(counted[0])
        rows = np.arange(count)
        return rows if self.batch_index is None else rows[self.batch_index[:count] == self.call[1]]

    def selected(self, name):
        """Class and row of the image's candidates that the graph's own suppression keeps."""
        values, shape = self._values(name, (1, 0))
        if shape[-1:] != (3,):
            raise RuntimeError(
                f"the output {name} of shape {list(shape)} has no rows of image, class and box; correct the model card"
            )
        selected = values.reshape(-1, 3)
        of_image = (selected[:, 0] == self.call[1]) & (selected >= 0).all(axis=1)
        return selected[of_image, 1:].astype(int)

    def _table(self, name, rows):
        values, shape = self._values(name, self.of_call)
        # Scores may have the candidates last where boxes do not.
        has_rows_last = len(shape) == 3 and shape[2] == rows > 1 and shape[1] != rows
        candidates_last = self.convention.get("candidates_last") or has_rows_last
        # An output with one number per row has no column dimension.
        width = 1 if len(values) == rows else _dimension_of_columns(shape, candidates_last)
        if not width or len(values) != rows * width:
            raise RuntimeError(
                f"the model's outputs do not fit together: {name} has shape {list(shape)}, but there are {rows} boxes"
            )
        return values.reshape(width, rows).T if candidates_last else values.reshape(rows, width)

    def _values(self, name, call):
        images, index = call
        output = _output(self.outputs, name)
        if images > 1 and output.shape[:1] != (images,):
            raise RuntimeError(
                f"the output {name} of shape {list(output.shape)} does not match {images} images in one call"
            )
        values = output[index] if images > 1 else output
        return values.astype(F32, copy=False).ravel(), output.shape


def _dimension_of_columns(shape, candidates_last):
    place = 2 if candidates_last else 1
    return shape[-place] if len(shape) >= place else 0


def _candidates(convention, parts):
    """Row, class (without the background) and score of every candidate."""
    rows = parts.valid()
    if not len(rows):
        return rows, np.zeros(0, F32), np.zeros(0, F32)
    numbers = parts.scores[rows].astype(np.float64)
    activation = convention.get("activation", "none")
    activated = {"sigmoid": _sigmoid, "square-root": _square_root}.get(activation, lambda numbers: numbers)
    factor = 1.0 if parts.objectness is None else activated(parts.objectness[rows].astype(np.float64))
    if parts.labels is not None:
        return rows, parts.labels[rows], (activated(numbers[:, 0]) * factor).astype(F32)
    scores = _softmax(numbers) if activation == "softmax" else activated(numbers)
    if convention.get("selected"):
        # The selection of the graph's own suppression: image, class and row.
        selected = parts.selected(convention["selected"])
        fits = (selected < [scores.shape[1], len(rows)]).all(axis=1)
        if not fits.all():
            number, row = selected[~fits][0]
            raise RuntimeError(
                f"the model selected class {number} of box {row}, but it has {scores.shape[1]} classes and {len(rows)} "
                "boxes; correct the model card"
            )
        classes, rows = selected.T
        scores = (scores * np.reshape(factor, (-1, 1)))[rows, classes]
        return rows, classes.astype(F32), scores.astype(F32)
    background = convention.get("background", "none")
    if background in (True, "first"):
        scores, numbers = scores[:, 1:], numbers[:, 1:]
    elif background == "last":
        scores, numbers = scores[:, :-1], numbers[:, :-1]
    count = scores.shape[1]
    if not count:
        names, _ = _columns(convention["scores"])
        raise RuntimeError(f"the output {', '.join(names)} has no class other than the background; correct the model card")
    if convention.get("label_choice", "best") == "best":
        # The sigmoid does not change which class is best.
        classes = (scores if activation == "softmax" else numbers).argmax(axis=1)
        scores = scores[np.arange(len(rows)), classes] * factor
        return rows, classes.astype(F32), scores.astype(F32)
    scores = scores * np.reshape(factor, (-1, 1))
    return np.repeat(rows, count), np.tile(np.arange(count), len(rows)).astype(F32), scores.astype(F32).ravel()


def _in_image_pixels(convention, placement, parts, rows):
    """Left, top, right, bottom of these rows in pixels of the upright image."""
    boxes = parts.boxes[rows].astype(np.float64)
    if convention.get("grid"):
        boxes = _decoded(convention["grid"], placement.canvas, parts.rows, rows, boxes)
    boxes = boxes[:, :4]
    if convention["box_format"] == "yxyx":
        boxes = boxes[:, [1, 0, 3, 2]]
    elif convention["box_format"] == "cxcywh":
        halves = boxes[:, 2:] / 2
        if parts.angle is not None:
            # The upright box around the rotated one.
            angle = parts.angle[rows].astype(np.float64)[:, None]
            halves = abs(np.cos(angle)) * halves + abs(np.sin(angle)) * halves[:, ::-1]
        boxes = np.hstack([boxes[:, :2] - halves, boxes[:, :2] + halves])
    if convention["box_space"] == "normalized":
        boxes = boxes * [*placement.canvas, *placement.canvas]
    boxes = boxes.astype(F32)
    if convention["box_space"] == "image-pixels":
        return boxes
    return (boxes.astype(np.float64) * (placement.scale * 2) + (placement.shift * 2)).astype(F32)


def _decoded(grid, canvas, total, rows, numbers):
    """Boxes that are relative to the cells of a grid, in pixels of the input."""
    strides = grid["strides"]
    ((coding, options),) = grid["coding"].items()
    sizes = np.array(options.get("sizes", np.zeros((len(strides), 2))), F32).reshape(len(strides), -1, 2)
    cells = []
    for stride, anchors in zip(strides, sizes.astype(np.float64)):
        width, height = (-(-side // stride) for side in canvas)
        x, y = np.tile(np.arange(width), height), np.repeat(np.arange(height), width)
        level = [np.stack([x, y, *(np.full(len(x), each) for each in (stride, *anchor))], axis=1) for anchor in anchors]
        # Only the candidates of a cell's priors are consecutive.
        cells.append(np.stack(level, axis=1).reshape(-1, 5) if coding == "priors" else np.concatenate(level))
    cells = np.concatenate([np.repeat(level, options.get("anchors", 1), axis=0) for level in cells])
    if len(cells) != total:
        raise RuntimeError(
            f"an input of {canvas[0]}x{canvas[1]} has {len(cells)} cells with strides {strides}, but the model "
            f"returned {total} candidates; correct the model card"
        )
    cell, stride, anchor = np.split(cells[rows], [2, 3], axis=1)
    if coding == "offsets":
        with np.errstate(over="ignore"):
            return np.hstack([(numbers[:, :2] + cell) * stride, np.exp(numbers[:, 2:4]) * stride])
    if coding == "anchors":
        twice = 2 * _sigmoid(numbers[:, :4])
        return np.hstack([(twice[:, :2] - 0.5 + cell) * stride, twice[:, 2:] ** 2 * anchor])
    if coding == "priors":
        centers = (cell + 0.5) * stride + 0.1 * numbers[:, :2] * anchor
        with np.errstate(over="ignore"):
            return np.hstack([centers, anchor * np.exp(0.2 * numbers[:, 2:4])])
    points = (cell + (0.5 if options["point"] == "center" else 0.0)) * stride
    if coding == "distances":
        distances = numbers[:, :4] * stride
        return np.hstack([points - distances[:, :2], points + distances[:, 2:]])
    bins = options["bins"]
    shares = _softmax(numbers.reshape(-1, 4, bins))
    distances = (shares * np.arange(bins)).sum(axis=-1) * stride
    return np.hstack([points - distances[:, :2], points + distances[:, 2:]])


def _not_suppressed(boxes, classes, max_iou):
    """Indexes of boxes, best first, that no better one of the same class overlaps by more than this."""
    if max_iou is None:
        return np.arange(len(boxes))
    kept = []
    areas = _areas(boxes)
    for number in np.unique(classes):
        (rest,) = np.nonzero(classes == number)
        while len(rest):
            best, rest = rest[0], rest[1:]
            kept.append(best)
            edges = [np.maximum(boxes[best, :2], boxes[rest, :2]), np.minimum(boxes[best, 2:], boxes[rest, 2:])]
            overlaps = _areas(np.hstack(edges))
            unions = areas[best] + areas[rest] - overlaps
            ious = np.divide(overlaps, unions, out=np.zeros_like(unions), where=unions > 0)
            rest = rest[ious <= F32(max_iou)]
    return np.sort(np.array(kept, int))


def _areas(boxes):
    return np.maximum(boxes[:, 2] - boxes[:, 0], F32(0)) * np.maximum(boxes[:, 3] - boxes[:, 1], F32(0))


def _class_ids(classes, offset):
    class_ids = classes.astype(np.float64) + offset
    wrong = ~((class_ids >= 0) & (class_ids < 2**32) & (class_ids == np.floor(class_ids)))
    if wrong.any():
        raise RuntimeError(
            f"the model returned class {classes[wrong][0]:g}, which is invalid with an offset of {offset}"
        )
    return class_ids.astype(np.int64)


def _columns(part):
    """The names of the outputs and the first column: a name, several, or a table with both."""
    part = part if isinstance(part, dict) else {"output": part}
    names = part["output"]
    return [names] if isinstance(names, str) else names, part.get("column", 0)


def _numbers_per_box(grid):
    coding = (grid or {}).get("coding", {})
    return 4 * coding["distance-bins"]["bins"] if "distance-bins" in coding else 4


def _output(outputs, name):
    if name not in outputs:
        raise RuntimeError(f"the model has no output “{name}”; it has {', '.join(sorted(outputs))}")
    values = np.asarray(outputs[name])
    if values.dtype.kind not in "fiu":
        raise RuntimeError(f"the model's output “{name}” has type {values.dtype}, which is not numeric")
    return values


def _finite(values):
    if not np.isfinite(values).all():
        raise RuntimeError("the model's boxes or scores are not numbers (NaN or infinite)")
    return values


def _arg_max(values):
    """Score 1 for the one class that the model returns."""
    if len(values) != 1 or not 0 <= values[0] < 1e6:
        raise RuntimeError(f"the model must return one class per image, it returned {values.tolist()[:8]}")
    scores = np.zeros(int(values[0]) + 1)
    scores[-1] = 1
    return scores


def _softmax(numbers):
    exponentials = np.exp(numbers - numbers.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _square_root(numbers):
    return np.sqrt(np.clip(numbers, 0, 1))


def _sigmoid(numbers):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-numbers))
