//! Parses HTML with a limit on elements and depth, so that a nesting bomb ends the parse and not the process.

use std::borrow::Cow;
use std::cell::Cell;

use dom_query::{Document, NodeId};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, ParseOpts, QualName, parse_document};

/// Maximum number of nodes per page. Large pages have tens of thousands.
const MAX_NODES: usize = 200_000;
/// Maximum nesting; browsers stop at 512. Code that walks the tree later may recurse.
const MAX_DEPTH: usize = 512;
/// Bytes parsed between two checks of the limits.
const CHECK_STEP: usize = 1024;

/// A page as a tree, and whether it is complete.
pub(super) struct PageTree {
    pub(super) document: Document,
    /// True if the parse stopped at a limit.
    pub(super) cut: bool,
}

/// Parses a page up to the limits.
pub(super) fn parse(html: &str) -> PageTree {
    let opts = ParseOpts {
        tree_builder: TreeBuilderOpts {
            scripting_enabled: false,
            ..TreeBuilderOpts::default()
        },
        ..ParseOpts::default()
    };
    let mut parser = parse_document(DocumentSink::new(), opts);
    let (mut rest, mut cut) = (html, false);
    while !rest.is_empty() {
        let sink = &parser.tokenizer.sink.sink;
        let nodes = sink.document.tree.len();
        if nodes > MAX_NODES || sink.depth() > MAX_DEPTH {
            cut = true;
            break;
        }
        // One tag may reopen as many elements as are nested, so a larger tree needs smaller steps.
        let step = (MAX_NODES / (nodes + 1)).clamp(16, CHECK_STEP);
        let (piece, after) = rest.split_at(rest.floor_char_boundary(step.max(4)));
        parser.process(StrTendril::from_slice(piece));
        rest = after;
    }
    PageTree {
        document: parser.finish(),
        cut,
    }
}

/// A document that remembers its newest element.
struct DocumentSink {
    document: Document,
    newest: Cell<NodeId>,
}

impl DocumentSink {
    fn new() -> Self {
        let document = Document::default();
        let newest = Cell::new(document.tree.root_id());
        Self { document, newest }
    }

    /// Returns the depth of the newest element.
    fn depth(&self) -> usize {
        let tree = &self.document.tree;
        tree.ancestor_ids_of_it(&self.newest.get(), Some(MAX_DEPTH + 1))
            .count()
    }
}

impl TreeSink for DocumentSink {
    type Handle = NodeId;
    type Output = Document;
    type ElemName<'a> = <Document as TreeSink>::ElemName<'a>;

    fn finish(self) -> Document {
        self.document
    }

    /// Discards errors: a broken page could produce one for every byte.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.document.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Self::ElemName<'a> {
        self.document.elem_name(target)
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        flags: ElementFlags,
    ) -> NodeId {
        let made = self.document.create_element(name, attributes, flags);
        self.newest.set(made);
        made
    }

    fn create_comment(&self, text: StrTendril) -> NodeId {
        self.document.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeId {
        self.document.create_pi(target, data)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.document.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &NodeId,
        previous: &NodeId,
        child: NodeOrText<NodeId>,
    ) {
        self.document
            .append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.document
            .append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.document.get_template_contents(target)
    }

    fn same_node(&self, x: &NodeId, y: &NodeId) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.document.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &NodeId, new: NodeOrText<NodeId>) {
        self.document.append_before_sibling(sibling, new);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attributes: Vec<Attribute>) {
        self.document.add_attrs_if_missing(target, attributes);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        TreeSink::remove_from_parent(&self.document, target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        TreeSink::reparent_children(&self.document, node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        TreeSink::is_mathml_annotation_xml_integration_point(&self.document, handle)
    }
}
