//! Spans of time as people write them: `20`, `1.5`, `90s`, `2m`, `1h`, `250ms`.

/// Reads a span as seconds; none where the text is not one. A bare number is seconds; zero, negative and overlong ones
/// are refused.
pub fn parse(text: &str) -> Option<f64> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let (number, scale) = units.iter().find_map(|&(unit, scale)| {
        let number = text.strip_suffix(unit)?;
        number.ends_with(|c: char| c.is_ascii_digit() || c == '.').then_some((number, scale))
    })?;
    if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * scale;
    (seconds > 0.0 && seconds <= 3.2e8).then_some(seconds)
}

/// For clap: the same with a message.
pub fn value(text: &str) -> Result<f64, String> {
    parse(text).ok_or_else(|| format!("`{text}` is not a span of time such as 20, 90s, 2m or 1h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_people_write() {
        for (text, seconds) in
            [("20", 20.0), ("1.5", 1.5), ("90s", 90.0), ("2m", 120.0), ("1h", 3600.0), ("250ms", 0.25)]
        {
            assert_eq!(parse(text), Some(seconds), "{text}");
        }
        for text in ["", "s", "0", "-1", "1d", "add.cubin", "1e3", "nan", "inf", "1.2.3", "99999999999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
