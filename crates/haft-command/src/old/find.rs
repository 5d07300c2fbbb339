//! `find`: the tests and actions that only read. Those not listed here may run, write or delete.

use haft_shell::{AsWord, Layer};

/// Expression words that take no value.
const FLAGS: &str = "! ( ) , -H -L -P -a -and -d -daystart -depth -empty -executable -false -follow \
    -ignore_readdir_race -ls -mount -nogroup -noignore_readdir_race -noleaf -not -nouser -nowarn \
    -o -or -print -print0 -prune -quit -readable -true -warn -writable -xdev";

/// Expression words that take the next word as value.
const VALUE_OPTIONS: &str = "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath \
    -iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -path -perm -printf \
    -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype";

/// Whether every word is known, and every possible test or action only reads.
pub fn only_looks<W: AsWord>(layer: Layer<'_, W>) -> bool {
    if !layer.is_known() {
        return false;
    }
    let mut words = layer.words.iter().skip(1);
    while let Some(word) = words.next() {
        let text = word.text();
        // Skip the value of a word that takes one: `-mtime -7`.
        let valued = lists(VALUE_OPTIONS, text) || text.starts_with("-newer");
        let listed = valued && words.next().is_some();
        if !listed && text.starts_with('-') && !lists(FLAGS, text) {
            return false;
        }
    }
    true
}

fn lists(table: &str, word: &str) -> bool {
    table.split(' ').any(|listed| listed == word)
}
