//! Commits and tags, parsed as git parses them: what git might read otherwise than haft is refused.
//!
//! Git takes the lines at the beginning in a fixed order and looks for none of them later; other programs take the first or the last of
//! several. So each name may be there once, in git's order. Formats: `parse_commit_buffer` and `parse_tag_buffer` in git's source, and
//! what `git fsck` calls an error.

use super::id::ObjectId;
use super::object::ObjectKind;

/// Maximum number of parents of a commit.
const MAX_PARENTS: usize = 256;

/// A commit.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) id: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    /// The author: name and address.
    pub(super) author: String,
    /// Who made the commit of what the author wrote: name and address.
    pub(super) committer: String,
    /// Seconds since 1970 when it was written. A copy has the time of the original.
    pub(super) written: i64,
    /// Seconds since 1970 when it was made.
    pub(super) time: i64,
    pub(super) message: String,
}

impl Commit {
    /// Parses a commit's content; `None` if git might read another tree or other parents in it.
    pub(super) fn parse(id: ObjectId, content: &[u8]) -> Option<Self> {
        let mut lines = HeaderLines::split(content)?;
        let tree = ObjectId::from_hex(lines.take(b"tree")?)?;
        let mut parents = Vec::new();
        while let Some(hex) = lines.take(b"parent") {
            parents.push(ObjectId::from_hex(hex)?);
            if parents.len() > MAX_PARENTS {
                return None;
            }
        }
        let (author, written) = who_of(lines.take(b"author")?);
        let (committer, time) = who_of(lines.take(b"committer")?);
        let once: [&[u8]; 4] = [b"tree", b"parent", b"author", b"committer"];
        let message = lines.message(&once)?;
        Some(Self {
            id,
            tree,
            parents,
            author,
            committer,
            written,
            time,
            message,
        })
    }

    /// Returns the first line of the message.
    pub(super) fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default().trim()
    }
}

/// Returns the name with the address, and the time.
fn who_of(line: &[u8]) -> (String, i64) {
    let text = String::from_utf8_lossy(line);
    let end = text.rfind('>').map_or(text.len(), |at| at + 1);
    let time = text[end..].split_whitespace().next();
    let time = time.and_then(|word| word.parse().ok()).unwrap_or(0);
    (text[..end].to_owned(), time)
}

/// Returns a tag's target, its kind and its message; `None` if git might read another target in it.
pub(super) fn parse_tag(content: &[u8]) -> Option<(ObjectId, ObjectKind, String)> {
    let mut lines = HeaderLines::split(content)?;
    let target = ObjectId::from_hex(lines.take(b"object")?)?;
    let kind = ObjectKind::of_word(lines.take(b"type")?)?;
    lines.take(b"tag")?;
    // Git's first tags have none.
    lines.take(b"tagger");
    let once: [&[u8]; 4] = [b"object", b"type", b"tag", b"tagger"];
    Some((target, kind, lines.message(&once)?))
}

/// The lines before the message, each as its name and its value.
struct HeaderLines<'c> {
    left: std::vec::IntoIter<(&'c [u8], &'c [u8])>,
    message: &'c [u8],
}

impl<'c> HeaderLines<'c> {
    fn split(content: &'c [u8]) -> Option<Self> {
        let (mut lines, mut rest) = (Vec::new(), content);
        while !rest.is_empty() {
            let (line, after) = rest.split_at(memchr::memchr(b'\n', rest)?);
            rest = &after[1..];
            match line.first() {
                None => break,
                // A further line of the value before, as signatures have them.
                Some(b' ') if !lines.is_empty() => continue,
                _ => {}
            }
            if memchr::memchr(0, line).is_some() {
                return None;
            }
            let space = memchr::memchr(b' ', line).unwrap_or(line.len());
            lines.push((&line[..space], line.get(space + 1..).unwrap_or_default()));
        }
        Some(Self {
            left: lines.into_iter(),
            message: rest,
        })
    }

    /// Takes the next line if it has this name, and returns its value.
    fn take(&mut self, name: &[u8]) -> Option<&'c [u8]> {
        let (found, value) = self.left.as_slice().first().copied()?;
        (found == name).then(|| {
            self.left.next();
            value
        })
    }

    /// Returns the message; `None` if one of these names comes again.
    fn message(mut self, once: &[&[u8]]) -> Option<String> {
        let again = self.left.any(|(name, _)| once.contains(&name));
        let text = String::from_utf8_lossy(self.message);
        (!again).then(|| text.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Commit, parse_tag};
    use crate::command::meaning::git::id::ObjectId;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn commit_that_git_might_read_otherwise_is_refused() {
        let who = "author A <a@b> 5 +0000\ncommitter C <c@d> 6 +0000\n";
        let mail = format!("mergetag object {TWO}\n type commit\n tree {TWO}\n \n x\n");
        for (content, parents) in [
            (format!("tree {ONE}\n{who}\nhello\n"), Some(0)),
            (
                format!("tree {ONE}\nparent {TWO}\n{who}\ntree {TWO}\n"),
                Some(1),
            ),
            (
                format!("tree {ONE}\nparent {ONE}\nparent {TWO}\n{who}"),
                Some(2),
            ),
            (
                format!("tree {ONE}\n{who}encoding x\n{mail}gpgsig a\n  b\n\nm"),
                Some(0),
            ),
            (format!("tree {ONE}\n{who}odd\n\nm"), Some(0)),
            (String::new(), None),
            (format!("tree {ONE}"), None),
            (format!("tree {ONE}\n\nm"), None),
            (format!("tree {ONE}x\n{who}\nm"), None),
            (format!("tree  {ONE}\n{who}\nm"), None),
            (format!(" tree {TWO}\ntree {ONE}\n{who}\nm"), None),
            (format!("parent {TWO}\ntree {ONE}\n{who}\nm"), None),
            (format!("tree {ONE}\n{who}parent {TWO}\n\nm"), None),
            (format!("tree {ONE}\n{who}tree {TWO}\n\nm"), None),
            (format!("tree {ONE}\ntree {TWO}\n{who}\nm"), None),
            (format!("tree {ONE}\n{who}{who}\nm"), None),
            (format!("tree {ONE}\n{who}x\0\n\nm"), None),
            (format!("tree {ONE}\n{who}x"), None),
        ] {
            let id = ObjectId([9; 20]);
            let read = Commit::parse(id, content.as_bytes());
            let found = read.as_ref().map(|commit| commit.parents.len());
            assert_eq!(found, parents, "{content:?}");
            assert!(
                read.is_none_or(|commit| commit.tree.hex() == ONE),
                "{content:?}"
            );
        }
    }

    #[test]
    fn tag_that_git_might_read_otherwise_is_refused() {
        let rest = "type commit\ntag v1\n";
        for (content, is_read) in [
            (
                format!("object {ONE}\n{rest}tagger A <a> 1 +0000\n\nm\n"),
                true,
            ),
            (format!("object {ONE}\n{rest}\nm\nobject {TWO}\n"), true),
            (
                format!("object {ONE}\n{rest}gpgsig x\n object\n\nm\n"),
                true,
            ),
            (format!("object {ONE}\n{rest}object {TWO}\n\nm\n"), false),
            (format!("object {ONE}\nobject {TWO}\n{rest}\nm\n"), false),
            (format!("object {ONE}\n{rest}type tree\n\nm\n"), false),
            (format!("object {ONE}\ntype commits\ntag v1\n\nm\n"), false),
            (format!("object {ONE}\ntype commit\n\nm\n"), false),
            (format!("{rest}object {ONE}\n\nm\n"), false),
        ] {
            let read = parse_tag(content.as_bytes());
            assert_eq!(read.is_some(), is_read, "{content:?}");
            assert!(read.is_none_or(|(target, ..)| target.hex() == ONE));
        }
    }
}
