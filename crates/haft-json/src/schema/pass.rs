//! The single pass: the strict scan and the schema's checks over the same bytes, without building a value.

use super::node::{
    ARRAY, Additional, ArrayRule, BOOLEAN, Bound, INTEGER, Lengths, NULL, NUMBER, Node, NodeId,
    OBJECT, ObjectRule, Program, Range, STRING, Scalar,
};
use crate::keys::{Keys, duplicate};
use crate::lexer::{Fault, LexError, Lexer, MAX_DEPTH, Number, Span};
use crate::scan;

/// Why the pass failed. Only strict faults are final: the full validator decides on the rest.
#[derive(Debug)]
pub(super) enum Halt {
    /// The text is not strict JSON.
    Fault,
    /// The text does not match the schema.
    Invalid,
    /// A number or array that this pass does not judge.
    Unsure,
}

impl From<LexError> for Halt {
    #[cold]
    fn from(_: LexError) -> Self {
        Self::Fault
    }
}

type Step = Result<(), Halt>;

/// Integers below this are exact as doubles.
const MAX_EXACT: u64 = 1 << 53;
const EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;
/// Maximum number of items in an array that is checked for uniqueness here.
const MAX_UNIQUE: usize = 32;

/// Runs a program over a text.
pub(super) fn run(program: &Program, text: &str) -> Step {
    let mut pass = Pass {
        program,
        lexer: Lexer::new(text),
        keys: Keys::default(),
    };
    pass.value(0, 0)?;
    pass.lexer.finish()?;
    Ok(())
}

struct Pass<'p, 't> {
    program: &'p Program,
    lexer: Lexer<'t>,
    keys: Keys,
}

impl<'p> Pass<'p, '_> {
    /// Checks one value at `depth` open levels. Its recursion is bounded by [`MAX_DEPTH`].
    fn value(&mut self, id: NodeId, depth: usize) -> Step {
        let program = self.program;
        let Some(mut node) = program.nodes.get(id) else {
            return Err(Halt::Unsure);
        };
        let byte = self.lexer.peek();
        loop {
            if byte == b'n' && node.null_passes {
                self.lexer.literal("null")?;
                return Ok(());
            }
            match node.target {
                Some(target) => node = program.nodes.get(target).ok_or(Halt::Unsure)?,
                None => break,
            }
        }
        match byte {
            b'"' => self.string(node),
            b'{' => self.object(node, depth),
            b'[' => self.array(node, depth),
            b'-' | b'0'..=b'9' => self.number(node),
            b't' => self.boolean(node, true),
            b'f' => self.boolean(node, false),
            b'n' => {
                self.lexer.literal("null")?;
                passes(node.types & NULL != 0)?;
                only(node, |scalar| *scalar == Scalar::Null)
            }
            _ => Ok(self.lexer.stop(Fault::Expected("a value"))?),
        }
    }

    #[inline]
    fn string(&mut self, node: &Node) -> Step {
        let span = self.lexer.string()?;
        passes(node.types & STRING != 0)?;
        if let Some(lengths) = node.string {
            self.length(span, lengths)?;
        }
        if node.allowed.is_none() {
            return Ok(());
        }
        if span.escaped {
            let text = self.lexer.unescape(span);
            return only(
                node,
                |s| matches!(s, Scalar::String(known) if *known == text),
            );
        }
        let raw = self.lexer.raw(span);
        only(
            node,
            |s| matches!(s, Scalar::String(known) if known.as_bytes() == raw),
        )
    }

    #[inline]
    fn length(&self, span: Span, lengths: Lengths) -> Step {
        let bytes = (span.end - span.start) as u64;
        // A code point takes one to four bytes, or at most twelve if escaped.
        let least = if span.escaped {
            bytes / 12
        } else {
            bytes.div_ceil(4)
        };
        if bytes <= lengths.max && least >= lengths.min {
            return Ok(());
        }
        let points = if span.escaped {
            self.lexer.unescape(span).chars().count()
        } else {
            let raw = self.lexer.raw(span);
            raw.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
        };
        within(points as u64, lengths)
    }

    #[inline]
    fn boolean(&mut self, node: &Node, value: bool) -> Step {
        self.lexer.literal(if value { "true" } else { "false" })?;
        passes(node.types & BOOLEAN != 0)?;
        only(node, |scalar| *scalar == Scalar::Boolean(value))
    }

    #[inline]
    fn number(&mut self, node: &Node) -> Step {
        let number = self.lexer.number()?;
        passes(node.types & (NUMBER | INTEGER) != 0)?;
        let Some(small) = number.small else {
            return self.double(node, number);
        };
        if let Some(range) = &node.number {
            integer_in(small, range)?;
        }
        only(node, |scalar| *scalar == Scalar::Integer(small))
    }

    /// Checks a number with a fraction, an exponent or many digits.
    fn double(&self, node: &Node, number: Number) -> Step {
        let plain = node.number.is_none() && node.allowed.is_none();
        if plain && (node.types & NUMBER != 0 || number.integer) {
            return Ok(());
        }
        let value = self.lexer.double(number).ok_or(Halt::Unsure)?;
        if node.types & NUMBER == 0 && value.fract() != 0.0 {
            return Err(Halt::Invalid);
        }
        if node.allowed.is_some() || value.abs() >= EXACT_DOUBLE {
            return if plain { Ok(()) } else { Err(Halt::Unsure) };
        }
        node.number
            .as_ref()
            .map_or(Ok(()), |range| double_in(value, range))
    }

    fn array(&mut self, node: &Node, depth: usize) -> Step {
        passes(node.types & ARRAY != 0 && node.allowed.is_none())?;
        let Some(rule) = &node.array else {
            return Ok(scan::value(&mut self.lexer, &mut self.keys, depth)?);
        };
        if depth >= MAX_DEPTH {
            return Err(Halt::Fault);
        }
        let count = self.items(rule, depth + 1)?;
        within(count as u64, rule.count)
    }

    fn items(&mut self, rule: &ArrayRule, depth: usize) -> Result<usize, Halt> {
        self.lexer.at += 1;
        if self.lexer.peek() == b']' {
            self.lexer.at += 1;
            return Ok(0);
        }
        let mut seen: Vec<(usize, usize)> = Vec::new();
        let mut count = 0;
        loop {
            self.lexer.peek();
            let from = self.lexer.at;
            match rule.items {
                Some(items) => self.value(items, depth)?,
                None => scan::value(&mut self.lexer, &mut self.keys, depth)?,
            }
            if rule.unique {
                self.unique(&mut seen, from)?;
            }
            count += 1;
            let next = self.lexer.peek();
            self.lexer.at += 1;
            match next {
                b',' => {}
                b']' => return Ok(count),
                _ => return Err(Halt::Fault),
            }
        }
    }

    /// Compares the last item with those before it; judges only plain strings and integers.
    fn unique(&self, seen: &mut Vec<(usize, usize)>, from: usize) -> Step {
        let text = self.lexer.text().as_bytes();
        let item = text.get(from..self.lexer.at).unwrap_or_default();
        let judged = match item.first() {
            Some(b'"') => !item.contains(&b'\\'),
            Some(b'0'..=b'9') => item.len() <= 18 && item.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        if !judged || seen.len() >= MAX_UNIQUE {
            return Err(Halt::Unsure);
        }
        passes(seen.iter().all(|&(a, b)| text.get(a..b) != Some(item)))?;
        seen.push((from, self.lexer.at));
        Ok(())
    }

    fn object(&mut self, node: &'p Node, depth: usize) -> Step {
        passes(node.types & OBJECT != 0 && node.allowed.is_none())?;
        let Some(rule) = &node.object else {
            return Ok(scan::value(&mut self.lexer, &mut self.keys, depth)?);
        };
        if depth >= MAX_DEPTH {
            return Err(Halt::Fault);
        }
        let base = self.keys.base();
        let mut seen = 0_u128;
        let mut count = 0;
        self.lexer.at += 1;
        if self.lexer.peek() == b'}' {
            self.lexer.at += 1;
        } else {
            loop {
                self.property(rule, &mut seen, base, depth + 1)?;
                count += 1;
                let next = self.lexer.peek();
                self.lexer.at += 1;
                match next {
                    b',' => {}
                    b'}' => break,
                    _ => return Err(Halt::Fault),
                }
            }
        }
        self.keys.close(&self.lexer, base)?;
        passes(seen & rule.required == rule.required)?;
        within(count, rule.count)
    }

    #[inline]
    fn property(
        &mut self,
        rule: &'p ObjectRule,
        seen: &mut u128,
        base: usize,
        depth: usize,
    ) -> Step {
        let key = self.lexer.key()?;
        let found = if key.escaped {
            rule.find(self.lexer.unescape(key).as_bytes())
        } else {
            rule.find(self.lexer.raw(key))
        };
        if let Some((number, node)) = found {
            let bit = 1_u128 << number;
            if *seen & bit != 0 {
                return Err(duplicate(key).into());
            }
            *seen |= bit;
            return self.value(node, depth);
        }
        self.keys.add(&self.lexer, base, key)?;
        match rule.additional {
            Additional::Any => Ok(scan::value(&mut self.lexer, &mut self.keys, depth)?),
            Additional::None => Err(Halt::Invalid),
            Additional::Node(node) => self.value(node, depth),
        }
    }
}

#[inline]
fn passes(verdict: bool) -> Step {
    if verdict { Ok(()) } else { Err(Halt::Invalid) }
}

#[inline]
fn within(count: u64, lengths: Lengths) -> Step {
    passes(lengths.min <= count && count <= lengths.max)
}

#[inline]
fn only(node: &Node, is: impl Fn(&Scalar) -> bool) -> Step {
    match &node.allowed {
        None => Ok(()),
        Some(allowed) => passes(allowed.iter().any(is)),
    }
}

/// Returns the double equal to an integer, if there is one.
#[expect(clippy::cast_precision_loss, reason = "only what is exact is cast")]
fn to_exact_double(value: i64) -> Option<f64> {
    (value.unsigned_abs() < MAX_EXACT).then_some(value as f64)
}

fn integer_in(value: i64, range: &Range) -> Step {
    let exact = to_exact_double(value);
    let end = |bound: Option<Bound>, holds: fn(std::cmp::Ordering) -> bool| match bound {
        None => Ok(()),
        Some(Bound::Integer(limit)) => passes(holds(value.cmp(&limit))),
        Some(Bound::Double(limit)) => {
            let value = exact.ok_or(Halt::Unsure)?;
            passes(value.partial_cmp(&limit).is_some_and(holds))
        }
    };
    end(range.min, std::cmp::Ordering::is_ge)?;
    end(range.above, std::cmp::Ordering::is_gt)?;
    end(range.max, std::cmp::Ordering::is_le)?;
    end(range.below, std::cmp::Ordering::is_lt)?;
    match range.multiple_of {
        None => Ok(()),
        Some(step) if exact.is_some() => passes(value % step == 0),
        Some(_) => Err(Halt::Unsure),
    }
}

fn double_in(value: f64, range: &Range) -> Step {
    let end = |bound: Option<Bound>, holds: fn(std::cmp::Ordering) -> bool| {
        let limit = match bound {
            None => return Ok(()),
            Some(Bound::Integer(limit)) => to_exact_double(limit).ok_or(Halt::Unsure)?,
            Some(Bound::Double(limit)) => limit,
        };
        passes(value.partial_cmp(&limit).is_some_and(holds))
    };
    end(range.min, std::cmp::Ordering::is_ge)?;
    end(range.above, std::cmp::Ordering::is_gt)?;
    end(range.max, std::cmp::Ordering::is_le)?;
    end(range.below, std::cmp::Ordering::is_lt)?;
    if range.multiple_of.is_some() {
        return Err(Halt::Unsure);
    }
    Ok(())
}
