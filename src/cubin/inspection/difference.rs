//! What differs between images: one row a fact, one column an image.

use super::{Inspection, KernelFacts};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// One fact in which images differ.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The fact's name.
    pub fact: String,
    /// Its value in each image, in the images' order; none where the image has no such fact.
    pub values: Vec<Option<String>>,
}

/// Every fact in which at least two of the images differ, in the order in which the images name them.
pub fn differences(images: &[Inspection]) -> Vec<Difference> {
    let mut order: Vec<String> = Vec::new();
    let mut rows: HashMap<String, Vec<Option<String>>> = HashMap::new();
    for (column, image) in images.iter().enumerate() {
        for (fact, value) in facts(image) {
            let row = rows.entry(fact.clone()).or_insert_with(|| {
                order.push(fact);
                vec![None; images.len()]
            });
            row[column] = Some(value);
        }
    }
    let differs = |values: &Vec<Option<String>>| values.iter().any(|v| *v != values[0]);
    order
        .into_iter()
        .filter_map(|fact| rows.remove(&fact).filter(differs).map(|values| Difference { fact, values }))
        .collect()
}

fn facts(image: &Inspection) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |fact: &str, value: Option<String>| rows.extend(value.map(|v| (fact.to_owned(), v)));
    row("kind", Some(image.kind.clone()));
    row("architecture", image.arch.clone());
    row("target", image.target.clone());
    row("runs on", image.runs_on.clone());
    row("compiler", image.compiler.as_ref().map(|c| c.name.clone()));
    row("compiler version", image.compiler.as_ref().and_then(|c| c.version.clone()));
    row("back end", image.compiler.as_ref().and_then(|c| c.back_end.clone()));
    row("languages", Some(image.languages.join(", ")));
    row("debug", image.debug.clone());
    row("file, bytes", Some(image.bytes.to_string()));
    row("tile", Some(yes_no(image.tile)));
    let host = image.host_object.as_ref();
    row("host object", Some(host.map_or("none".into(), |h| h.machine.clone())));
    row("host object, bytes", host.map(|h| h.bytes.to_string()));
    row("host object: code, bytes", host.map(|h| h.code_bytes.to_string()));
    row("host object: interface version", host.and_then(|h| h.api_version).map(|v| v.to_string()));
    row("host object: second copy", host.map(|h| yes_no(h.second_copy.is_some())));
    row("host object: kernels without callback", host.map(|h| h.kernels_without_callback.join(", ")));
    row(
        "metadata symbol",
        Some(image.metadata.as_ref().map_or("none".into(), |m| format!("{} bytes in {}", m.bytes, m.section))),
    );
    row("embedded PTX, bytes", image.embedded_ptx_bytes.map(|b| b.to_string()));
    row("embedded Tile IR, bytes", image.embedded_tile_ir_bytes.map(|b| b.to_string()));
    row(
        "source names given away",
        Some(image.source_paths.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ")),
    );
    row("kernels", Some(image.kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ")));
    for kernel in &image.kernels {
        let callback = host.and_then(|h| h.callbacks.iter().find(|c| c.kernel == kernel.name));
        let writes = callback.and_then(|c| c.writes_descriptors).map(yes_no);
        rows.extend(kernel_facts(kernel).into_iter().map(|(f, v)| (format!("{}: {f}", kernel.name), v)));
        rows.extend(writes.map(|w| (format!("{}: callback writes descriptors", kernel.name), w)));
    }
    for section in &image.sections {
        rows.push((format!("section {}, bytes", section.name), section.bytes.to_string()));
    }
    for (index, member) in image.members.iter().enumerate() {
        rows.push((format!("member {index}"), format!("{} {} {}", member.kind, member.arch, member.compression)));
    }
    rows
}

fn kernel_facts(kernel: &KernelFacts) -> Vec<(String, String)> {
    let three = |dims: Option<[u32; 3]>| dims.map(|[x, y, z]| format!("{x}x{y}x{z}"));
    let number = |n: Option<u32>| n.map(|n| n.to_string());
    let parameters = kernel.parameters.as_ref().map(|list| {
        let words =
            list.iter().map(|p| format!("{:#x}:{}{}", p.offset, p.size, if p.pointer == "yes" { "*" } else { "" }));
        words.collect::<Vec<_>>().join(" ")
    });
    let rows = [
        ("parameters", kernel.parameters.as_ref().map(|p| p.len().to_string())),
        ("parameter layout", parameters),
        ("parameter buffer, bytes", Some(kernel.cbank_param_size.to_string())),
        ("hidden parameters, bytes", Some(kernel.hidden_parameter_bytes.to_string())),
        ("parameter base", kernel.param_base.map(|b| format!("{b:#x}"))),
        ("constant bank 0, bytes", Some(kernel.constant_bank_bytes.to_string())),
        ("required block", three(kernel.required_block)),
        ("largest block", three(kernel.max_block)),
        ("cluster", three(kernel.cluster)),
        ("registers", number(kernel.registers)),
        ("shared memory, bytes", Some(kernel.shared_bytes.to_string())),
        ("frame, bytes", number(kernel.frame_bytes)),
        ("least stack, bytes", number(kernel.min_stack_bytes)),
        ("code, bytes", Some(kernel.code_bytes.to_string())),
        ("code SHA-256", kernel.code_sha256.as_ref().map(|s| s[..16].to_owned())),
    ];
    rows.into_iter().filter_map(|(fact, value)| value.map(|v| (fact.to_owned(), v))).collect()
}

fn yes_no(value: bool) -> String {
    if value { "yes".into() } else { "no".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_facts_make_no_row_and_missing_ones_do() {
        let one = Inspection { kind: "cubin".into(), arch: Some("sm_90".into()), ..Inspection::default() };
        let two = Inspection { kind: "cubin".into(), ..Inspection::default() };
        let rows = differences(&[one, two]);
        assert_eq!(rows, [Difference { fact: "architecture".into(), values: vec![Some("sm_90".into()), None] }]);
    }
}
