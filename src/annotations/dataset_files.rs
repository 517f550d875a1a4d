//! Files of exported datasets with what their formats lack. Spotcheck writes both; Datumaro, CVAT's library, also reads
//! and writes the classes.

use std::collections::HashMap;

use super::rows::{each_row, unescaped};

/// The names of all classes of Pascal VOC, also of those without an object.
pub(crate) const VOC_CLASSES: &str = "dataset_meta.json";

/// The label files of YOLO and Pascal VOC with their images. A label file has another name than its image if a file
/// system could not hold it, or if two images differ only in their extension.
pub(crate) const IMAGE_LIST: &str = "images.csv";

/// The header: the label file, relative to the folder of the list; the image, relative to the folder of images; and the
/// image's URI. Text is [`escaped`](super::rows::escaped).
pub(crate) const IMAGE_LIST_COLUMNS: [&str; 3] = ["label", "image", "uri"];

/// The image of each listed label file. Empty without a list.
#[derive(Debug, Default)]
pub(super) struct ImagesByFile(HashMap<String, String>);

impl ImagesByFile {
    /// Another table with this name is no list.
    pub(super) fn read(content: &[u8]) -> Self {
        let mut images = HashMap::new();
        let mut is_list = None;
        let read = each_row(content, ',', |_, cells| {
            let cells = cells.unwrap_or_default();
            let is_list = *is_list.get_or_insert_with(|| cells.iter().eq(IMAGE_LIST_COLUMNS));
            if let (true, [label, image, _]) = (is_list, cells) {
                images.insert(unescaped(label).to_owned(), unescaped(image).to_owned());
            }
        });
        read.expect("memory can always be read");
        Self(images)
    }

    pub(super) fn get(&self, file: &str) -> Option<&str> {
        self.0.get(file).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_files_have_their_images() {
        let list = "label,image,uri\r\nlabels/_a.txt,' a.png,file:///x\r\nlabels/b.txt,\"b\nb.png\",\r\n\"open,c\r\n";
        let images = ImagesByFile::read(list.as_bytes());
        let found = ["labels/_a.txt", "labels/b.txt", "labels/c.txt"].map(|file| images.get(file));
        assert_eq!(found, [Some(" a.png"), Some("b\nb.png"), None]);
    }

    #[test]
    fn other_tables_are_no_list() {
        for table in
            ["", "image,label,uri\nlabels/a.txt,a.png,x\n", "labels/a.txt,a.png,x\n", "label,image\nlabels/a.txt,a\n"]
        {
            assert_eq!(ImagesByFile::read(table.as_bytes()).get("labels/a.txt"), None, "{table}");
        }
    }
}
