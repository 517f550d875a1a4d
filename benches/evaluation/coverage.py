"""How often 95% intervals of AP contain the true AP, in a simulation with a known true AP.

    pip install numpy==2.4.6
    python coverage.py [DATA_SETS] [DRAWS]

A class has a Poisson-distributed number of objects, which varies between images. A fraction of them is detected, with
an IoU and a score that are higher for easy objects; whole images are easy or hard. Detections of background have lower
scores. The true AP of a class is that of 60,000 images. The compared intervals are `halves`, from
src/evaluation/intervals.rs, and `percentile`, the bootstrap that it replaced; finally, two equal models are compared,
whose difference should be 0.
"""

import sys
import warnings

import numpy as np

IOUS = 10
MODELS = 3  # Each makes a third of the predictions.
DATA = {
    "3 classes, 200 images": (3, 200, "even", 6.0),
    "3 classes, 30 images": (3, 30, "even", 6.0),
    "80 uneven classes, 128 images": (80, 128, "uneven", 7.3),
    "80 uneven classes, 1,000 images": (80, 1000, "uneven", 7.3),
}


class Detector:
    """A detector on images: per class the number of objects per image, and how they are detected."""

    def __init__(self, random, classes, frequencies, objects_per_image):
        weights = np.ones(classes) if frequencies == "even" else 1 / np.arange(1, classes + 1) ** 1.1
        self.rates = objects_per_image * weights / weights.sum()
        self.skill = random.normal(1.1, 0.8, classes)
        self.quality = random.normal(0.0, 0.5, classes)
        self.wrong = np.exp(random.normal(np.log(2.0), 0.4, classes))

    def predictions(self, random, c, ease, rate, count):
        """The image and the number of IoU thresholds reached of each detection, best score first, for `count` equally
        good models; and the image of each object."""
        images = len(ease)
        objects = np.repeat(np.arange(images), random.poisson(rate * random.gamma(0.5, 2.0, images)))
        ease_of_object = random.normal(0.0, 1.0, len(objects))
        models = []
        for _ in range(count):
            chance = 1 / (1 + np.exp(-(self.skill[c] + ease[objects] + ease_of_object)))
            is_found = random.random(len(objects)) < chance
            found = objects[is_found]
            quality = random.normal(self.quality[c] + 0.8 * ease[found] + 0.7 * ease_of_object[is_found], 1.0)
            reached = np.clip(np.floor((quality + 2.4) * 3), 0, IOUS).astype(int)
            scores = random.normal(0.3 * quality + 1.0 + 0.5 * ease[found], 1.0)
            wrong = np.repeat(np.arange(images), random.poisson(rate * self.wrong[c] * random.gamma(1.0, 1.0, images)))
            order = np.argsort(-np.concatenate([scores, random.normal(-1.0, 1.1, len(wrong))]), kind="stable")
            models.append((np.concatenate([found, wrong])[order],
                           np.concatenate([reached, np.zeros(len(wrong), int)])[order]))
        return models, objects


def average_precision(detections, objects, times):
    """COCO's AP of a class if image i occurs times[draw, i] times, for each draw; NaN without objects."""
    images, reached = detections
    truths = times[:, objects].sum(1)
    weights = times[:, images]
    shown = np.cumsum(weights, 1)
    sums = np.zeros(len(times))
    for step in range(IOUS):
        is_right = reached > step
        if is_right.any():
            right, all_shown = np.cumsum(weights * is_right, 1)[:, is_right], shown[:, is_right]
            precision = np.where(all_shown > 0, right / np.maximum(all_shown, 1), 0)
            envelope = np.maximum.accumulate(precision[:, ::-1], 1)[:, ::-1]
            # The recalls 0.00, 0.01 … 1.00 that are reached.
            recalls = np.where(right > 0, np.floor(100 * right / np.maximum(truths, 1)[:, None] + 1e-9) + 1, 0)
            sums += (envelope * np.diff(recalls, axis=1, prepend=0)).sum(1) / 101
    return np.where(truths > 0, sums / IOUS, np.nan)


def true_ap(random, detector):
    values = []
    for c in range(len(detector.rates)):
        ease = random.normal(0.0, 0.7, 60_000)
        (detections,), objects = detector.predictions(random, c, ease, 0.5, 1)
        values.append(average_precision(detections, objects, np.ones((1, len(ease))))[0])
    return np.mean(values)


def student_t(freedom):
    """The 97.5% quantile (Abramowitz and Stegun, 26.7.5)."""
    z = 1.959963984540054
    return (z + (z**3 + z) / 4 / freedom + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / freedom**2
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / freedom**3)


def draws(random, images, count):
    """All images once, random halves, and resamples with replacement."""
    halves = np.zeros((count, images))
    for half in halves:
        half[random.permutation(images)[: images // 2]] = 1
    return np.vstack([np.ones((1, images)), halves, random.multinomial(images, np.ones(images) / images, count)])


def intervals(by_class, images, count):
    """Those of the mean of the rows of `by_class` (classes by draws), or of a difference of two such means."""
    whole = sum(sign * np.nanmean(ap[:, 0]) for sign, ap in by_class)
    half = sum(sign * np.nanmean(ap[:, 1 : 1 + count], 0) for sign, ap in by_class)
    change = sum(sign * np.nanmean(ap[:, 1 : 1 + count] - ap[:, :1], 0) for sign, ap in by_class)
    repeated = sum(sign * np.nanmean(ap[:, 1 + count :], 0) for sign, ap in by_class)
    drawn = images // 2
    margin = student_t(images - 1) * np.sqrt(np.var(half) * drawn / (images - drawn))
    bias = change.mean() / (np.sqrt(images / drawn) - 1)
    return {
        "halves": (whole - max(bias, 0) - margin, whole - min(bias, 0) + margin),
        "percentile": (np.quantile(repeated, 0.025), np.quantile(repeated, 0.975)),
    }


def coverage(data, data_sets, count, models):
    """The fraction of datasets whose intervals contain the truth, and their mean widths."""
    classes, images, frequencies, objects_per_image = data
    hits, widths = {}, {}
    for seed in range(MODELS):
        random = np.random.default_rng(seed)
        detector = Detector(random, classes, frequencies, objects_per_image)
        truth = true_ap(random, detector) if models == 1 else 0.0
        for number in range(data_sets // MODELS):
            random = np.random.default_rng([seed, number])
            ease, times = random.normal(0.0, 0.7, images), draws(random, images, count)
            found = [[] for _ in range(models)]
            for c in range(classes):
                predicted, objects = detector.predictions(random, c, ease, detector.rates[c], models)
                if len(objects) > 0:
                    for ap, detections in zip(found, predicted):
                        ap.append(average_precision(detections, objects, times))
            by_class = [(sign, np.array(ap)) for sign, ap in zip((1, -1), found)]
            for name, (low, high) in intervals(by_class, images, count).items():
                hits.setdefault(name, []).append(low <= truth <= high)
                widths.setdefault(name, []).append(high - low)
    return ", ".join(f"{name} {100 * np.mean(hits[name]):.0f} % (width {np.mean(widths[name]):.3f})" for name in hits)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Mean of empty slice")
    data_sets, count = (int(given) for given in (sys.argv[1:] + ["300", "100"][len(sys.argv) - 1 :]))
    for name, data in DATA.items():
        print(f"{name}: {coverage(data, data_sets, count, 1)}", flush=True)
    for name in ["3 classes, 200 images", "80 uneven classes, 128 images"]:
        print(f"difference of equal models, {name}: {coverage(DATA[name], data_sets, count, 2)}", flush=True)
