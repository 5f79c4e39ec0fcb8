//! Expressions: read from the compact form that the type checker writes, evaluated on an event and a register.

use std::sync::Arc;

use crate::program::function::Function;
use crate::program::value::{Arithmetic, Comparison, Value};
use crate::raw::msgpack::{Malformed, Reader};

/// The version of the compact form that this build reads.
const FORMAT_VERSION: u64 = 1;
/// The number of the static type float in the compact form.
const FLOAT: u64 = 2;
const MAX_DEPTH: usize = 80;

/// What an expression can read of an event.
pub trait EventView {
    /// The field at this path, read as the declared type (a number of the compact form; 0: any).
    fn field(&self, path: &FieldPath) -> Value;
    /// `e.ts`.
    fn ts(&self) -> i64;
    /// `e.type`.
    fn kind(&self) -> Value;
    /// `e.id`.
    fn id(&self) -> Value;
}

/// A path into an event's data and the type that is declared for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath {
    /// The names from the outside in.
    pub steps: Arc<[Arc<str>]>,
    /// The declared type's number; 0 is any.
    pub declared: u8,
}

impl FieldPath {
    /// A value as the declared type reads it: an int as float where float is declared, else only its own type.
    #[must_use]
    pub fn conform(&self, value: Value) -> Value {
        match (self.declared, value) {
            (2, value @ Value::Int(_)) => value.widened(),
            (0, value)
            | (1, value @ Value::Int(_))
            | (2, value @ Value::Float(_))
            | (3, value @ Value::Bool(_))
            | (4, value @ Value::Str(_))
            | (5, value @ Value::List(_)) => value,
            _ => Value::Unknown,
        }
    }
}

/// The event's own attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// Event time.
    Ts,
    /// The event type.
    Kind,
    /// The event id.
    Id,
}

/// A node of an expression. Equal nodes mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A constant.
    Literal(Value),
    /// A field of the event's data.
    Field(FieldPath),
    /// An attribute of the event itself.
    Attribute(Attribute),
    /// A register, by its index in order of names.
    Register(usize),
    /// Unary minus.
    Negation(Box<Node>),
    /// A computation.
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    /// A comparison.
    Comparison(Comparison, Box<Node>, Box<Node>),
    /// `x == null`.
    UnknownTest(Box<Node>),
    /// `x in [...]`.
    Membership(Box<Node>, Vec<Value>),
    /// Three-valued and.
    And(Vec<Node>),
    /// Three-valued or.
    Or(Vec<Node>),
    /// Three-valued not.
    Not(Box<Node>),
    /// `then if condition else otherwise`; the flag says that the result is a float.
    Choice(bool, Box<Node>, Box<Node>, Box<Node>),
    /// A function call.
    Call(Function, Vec<Node>),
}

impl Node {
    /// Reads the compact form; `registers` are the register names in order.
    ///
    /// # Errors
    /// If the bytes are not a compact form of this version.
    pub fn read(bytes: &[u8], registers: &[Arc<str>]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.array(2)?;
        if reader.uint()? != FORMAT_VERSION {
            return Err(Malformed("an expression of another version"));
        }
        let node = read_node(&mut reader, registers, 0)?;
        reader.end()?;
        Ok(node)
    }

    /// Whether it reads the event.
    #[must_use]
    pub fn reads_event(&self) -> bool {
        match self {
            Self::Field(_) | Self::Attribute(_) => true,
            _ => self.children().iter().any(|child| child.reads_event()),
        }
    }

    /// Whether it reads the time or the id of the event, which hardly two events share.
    #[must_use]
    pub fn reads_ts_or_id(&self) -> bool {
        matches!(self, Self::Attribute(Attribute::Ts | Attribute::Id))
            || self.children().iter().any(|child| child.reads_ts_or_id())
    }

    /// Whether it reads a register.
    #[must_use]
    pub fn reads_register(&self) -> bool {
        matches!(self, Self::Register(_)) || self.children().iter().any(|child| child.reads_register())
    }

    /// The fields that it reads.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldPath> {
        match self {
            Self::Field(path) => vec![path.clone()],
            _ => self.children().iter().flat_map(|child| child.fields()).collect(),
        }
    }

    fn children(&self) -> Vec<&Node> {
        match self {
            Self::Literal(_) | Self::Field(_) | Self::Attribute(_) | Self::Register(_) => Vec::new(),
            Self::Negation(a) | Self::UnknownTest(a) | Self::Membership(a, _) | Self::Not(a) => vec![a],
            Self::Arithmetic(_, a, b) | Self::Comparison(_, a, b) => vec![a, b],
            Self::And(all) | Self::Or(all) | Self::Call(_, all) => all.iter().collect(),
            Self::Choice(_, a, b, c) => vec![a, b, c],
        }
    }

    /// The operands of the outermost ANDs: the condition is true iff all of them are.
    #[must_use]
    pub fn conjuncts(self) -> Vec<Node> {
        match self {
            Self::And(all) => all.into_iter().flat_map(Self::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// The value on an event (none for an epsilon arc) and a register.
    pub fn evaluate(&self, event: Option<&dyn EventView>, registers: &[Value]) -> Value {
        let of = |node: &Node| node.evaluate(event, registers);
        match self {
            Self::Literal(value) => value.clone(),
            Self::Field(path) => event.map_or(Value::Unknown, |event| event.field(path)),
            Self::Attribute(Attribute::Ts) => event.map_or(Value::Unknown, |event| Value::Int(event.ts())),
            Self::Attribute(Attribute::Kind) => event.map_or(Value::Unknown, EventView::kind),
            Self::Attribute(Attribute::Id) => event.map_or(Value::Unknown, EventView::id),
            Self::Register(index) => registers[*index].clone(),
            Self::Negation(operand) => match of(operand) {
                Value::Int(number) => Value::int(number.checked_neg()),
                Value::Float(number) => Value::Float(-number),
                _ => Value::Unknown,
            },
            Self::Arithmetic(operator, left, right) => operator.apply(&of(left), &of(right)),
            Self::Comparison(operator, left, right) => Value::truth(operator.apply(&of(left), &of(right))),
            Self::UnknownTest(operand) => Value::Bool(of(operand).is_unknown()),
            Self::Membership(operand, items) => {
                let tested = of(operand);
                Value::truth(any(items.iter().map(|item| Comparison::Equal.apply(&tested, item))))
            }
            Self::And(all) => {
                Value::truth(any(all.iter().map(|node| of(node).as_truth().map(|truth| !truth))).map(|truth| !truth))
            }
            Self::Or(all) => Value::truth(any(all.iter().map(|node| of(node).as_truth()))),
            Self::Not(operand) => Value::truth(of(operand).as_truth().map(|truth| !truth)),
            Self::Choice(float, condition, then, otherwise) => match of(condition).as_truth() {
                None => Value::Unknown,
                Some(chosen) => {
                    let value = of(if chosen { then } else { otherwise });
                    if *float { value.widened() } else { value }
                }
            },
            Self::Call(function, arguments) => function.call(&arguments.iter().map(of).collect::<Vec<_>>()),
        }
    }
}

/// SQL's OR: true if one is true, else unknown if one is unknown, else false.
fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut unknown = false;
    for truth in truths {
        match truth {
            Some(true) => return Some(true),
            Some(false) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(false) }
}

/// One node: `[kind, type, fields...]`, kinds in the order of the Python module that writes them.
fn read_node(reader: &mut Reader<'_>, registers: &[Arc<str>], depth: usize) -> Result<Node, Malformed> {
    if depth > MAX_DEPTH {
        return Err(Malformed("an expression nested too deeply"));
    }
    reader.any_array()?;
    let kind = reader.uint()?;
    let declared = reader.uint()?;
    let node = |reader: &mut Reader<'_>| read_node(reader, registers, depth + 1).map(Box::new);
    Ok(match kind {
        0 => Node::Literal(read_literal(reader)?),
        1 => {
            let steps = (0..reader.any_array()?)
                .map(|_| reader.text().map(Arc::from))
                .collect::<Result<_, _>>()?;
            let declared = u8::try_from(declared).map_err(|_| Malformed("an unknown type"))?;
            Node::Field(FieldPath { steps, declared })
        }
        2 => Node::Attribute(match reader.text()? {
            "ts" => Attribute::Ts,
            "type" => Attribute::Kind,
            "id" => Attribute::Id,
            _ => return Err(Malformed("an unknown attribute")),
        }),
        3 => {
            let name = reader.text()?;
            let index = registers.iter().position(|known| &**known == name);
            Node::Register(index.ok_or(Malformed("an unknown register"))?)
        }
        4 => Node::Negation(node(reader)?),
        5 => Node::Arithmetic(read_arithmetic(reader.text()?)?, node(reader)?, node(reader)?),
        6 => Node::Comparison(read_comparison(reader.text()?)?, node(reader)?, node(reader)?),
        7 => Node::UnknownTest(node(reader)?),
        8 => Node::Membership(node(reader)?, read_items(reader, depth)?),
        9 => Node::And(read_nodes(reader, registers, depth)?),
        10 => Node::Or(read_nodes(reader, registers, depth)?),
        11 => Node::Not(node(reader)?),
        12 => Node::Choice(declared == FLOAT, node(reader)?, node(reader)?, node(reader)?),
        13 => {
            let function = Function::named(reader.text()?).ok_or(Malformed("an unknown function"))?;
            Node::Call(function, read_nodes(reader, registers, depth)?)
        }
        _ => return Err(Malformed("an unknown kind of node")),
    })
}

fn read_nodes(reader: &mut Reader<'_>, registers: &[Arc<str>], depth: usize) -> Result<Vec<Node>, Malformed> {
    (0..reader.any_array()?)
        .map(|_| read_node(reader, registers, depth + 1))
        .collect()
}

/// The items of a membership: literal nodes.
fn read_items(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<Value>, Malformed> {
    (0..reader.any_array()?)
        .map(|_| match read_node(reader, &[], depth + 1)? {
            Node::Literal(value) => Ok(value),
            _ => Err(Malformed("a list of something else than literals")),
        })
        .collect()
}

fn read_literal(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    if reader.peek_array() {
        let items = (0..reader.any_array()?)
            .map(|_| reader.float())
            .collect::<Result<Vec<f64>, _>>()?;
        return Ok(Value::List(items.into()));
    }
    reader.value()
}

fn read_arithmetic(symbol: &str) -> Result<Arithmetic, Malformed> {
    Ok(match symbol {
        "+" => Arithmetic::Add,
        "-" => Arithmetic::Sub,
        "*" => Arithmetic::Mul,
        "/" => Arithmetic::Div,
        "//" => Arithmetic::FloorDiv,
        "%" => Arithmetic::Mod,
        _ => return Err(Malformed("an unknown operator")),
    })
}

fn read_comparison(symbol: &str) -> Result<Comparison, Malformed> {
    Ok(match symbol {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterEqual,
        _ => return Err(Malformed("an unknown comparison")),
    })
}

#[cfg(test)]
mod tests {
    use super::{FORMAT_VERSION, Node};
    use crate::program::value::Value;

    fn written(body: &[u8]) -> Vec<u8> {
        let version = u8::try_from(FORMAT_VERSION).expect("a small number");
        [&[0x92, version], body].concat()
    }

    /// `null in [null in [... in [null]]]`.
    #[test]
    fn lists_in_lists_are_refused_however_deep_they_are() {
        let deeper = [0x94, 8, 0, 0x93, 0, 0, 0xc0, 0x91];
        for levels in [1, 2, 79, 100_000] {
            let body = [&deeper.repeat(levels)[..], &[0x93, 0, 0, 0xc0]].concat();
            assert_eq!(Node::read(&written(&body), &[]).is_ok(), levels == 1, "{levels}");
        }
    }

    #[test]
    fn constants_are_finite() {
        for number in [f64::NAN, f64::INFINITY, 1.5] {
            let float = [&[0xcb][..], &number.to_be_bytes()].concat();
            let alone = [&[0x93, 0, 0][..], &float].concat();
            let listed = [&[0x93, 0, 0, 0x91][..], &float].concat();
            let read = [alone, listed].map(|body| Node::read(&written(&body), &[]).ok());
            let list = Value::List([number].as_slice().into());
            let expected = [Value::Float(number), list].map(Node::Literal);
            assert_eq!(read, expected.map(|node| Some(node).filter(|_| number.is_finite())));
        }
    }
}
