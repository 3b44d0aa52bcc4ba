//! Finds the computed columns of a view, from the view's definition as MariaDB stores it. Does no I/O.

/// Returns for each column of a view whether it is computed; `None` unless the definition begins with `select`.
/// Examines only the first SELECT of a UNION, since MariaDB can't write to such a view.
///
/// MariaDB stores definitions in one form: ``select `d`.`t`.`a` AS `a`,`d`.`t`.`b` + 1 AS `c` from …``.
pub(super) fn computed(definition: &str) -> Option<Vec<bool>> {
    let list = definition.strip_prefix("select ")?;
    let list = list.strip_prefix("distinct ").unwrap_or(list);
    let mut columns = Vec::new();
    let mut rest = list;
    loop {
        let end = item_end(rest);
        columns.push(!is_column(&rest[..end]));
        match rest[end..].strip_prefix(',') {
            Some(next) => rest = next,
            None => return Some(columns),
        }
    }
}

fn item_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'`' | b'\'' | b'"' => at = quoted_end(bytes, at),
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            b' ' if depth == 0 && bytes[at..].starts_with(b" from ") => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Returns the index of the closing quote. A doubled quote ends one quoted text and begins the next.
fn quoted_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quote != b'`' => at += 1,
            byte if *byte == quote => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len() - 1
}

fn is_column(item: &str) -> bool {
    let bytes = item.as_bytes();
    let mut at = 0;
    while bytes.get(at) == Some(&b'`') {
        at = quoted_end(bytes, at) + 1;
        while bytes.get(at) == Some(&b'`') {
            at = quoted_end(bytes, at) + 1;
        }
        if bytes.get(at) == Some(&b'.') {
            at += 1;
        } else {
            return item[at..].starts_with(" AS `");
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_from_expressions() {
        for (definition, expected) in [
            (
                "select `x`.`t`.`id` AS `id`,`x`.`t`.`n` * 2 AS `e`,`t2`.`a` AS `b` from `x`.`t`",
                vec![false, true, false],
            ),
            ("select distinct `t`.`a``,b` AS `c``d`,' from ' AS `l`,'a,\\'b' AS `m` from `t`", vec![false, true, true]),
            ("select (select max(`u`.`a`) from `u`) AS `m`,`t`.`a` AS ` from ` from `t`", vec![true, false]),
            ("select count(0) AS `n`,coalesce(`t`.`a`,1) AS `c` from `t`", vec![true, true]),
            ("select 1 AS `one`", vec![true]),
        ] {
            assert_eq!(computed(definition), Some(expected), "{definition}");
        }
        assert_eq!(computed(""), None);
        assert_eq!(computed("values (1)"), None);
    }
}
