//! Views of the workspace: a command sees and changes its own copy, and the workspace stays as it is.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;

use haft_sandbox::{CommandSpec, HomeFolder, OverlayFolders, PathGuard, StartError, Strength};

use crate::levels::at_most;
use crate::runner::Test;
use crate::{drivers, jail, line, run, wait};

pub(crate) const TESTS: &[Test] = &[
    (
        "a_view_keeps_every_change_from_the_workspace",
        changes_stay_in_the_view,
    ),
    ("a_view_hides_what_is_guarded_also_behind_a_rename", hidden),
    ("a_view_leads_to_no_socket_of_the_host", sockets),
    ("a_view_works_under_names_that_overlays_escape", names),
    ("a_view_of_changes_in_the_workspace_is_refused", inside),
    ("a_view_without_a_root_of_its_own_is_refused", too_weak),
    ("a_folder_of_the_home_is_filled_and_stays_as_it_is", home),
    ("a_folder_of_the_home_stays_below_it", outside_home),
];

/// A workspace and the folders of a view next to it.
struct Lab {
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Lab {
    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lab = Self { folder, name };
        for made in [&lab.workspace(), &lab.view().upper, &lab.view().work] {
            fs::create_dir_all(made).unwrap();
        }
        lab
    }

    fn workspace(&self) -> std::path::PathBuf {
        self.folder.path().join(self.name)
    }

    fn view(&self) -> OverlayFolders {
        let of = |part: &str| self.folder.path().join(format!("{}-{part}", self.name));
        OverlayFolders {
            upper: of("upper"),
            work: of("work"),
        }
    }

    fn spec(&self, script: &str) -> CommandSpec {
        let mut spec = line(script, &self.workspace());
        spec.mounts.view = Some(self.view());
        spec
    }

    /// Returns the paths in the workspace, with the content of files.
    fn files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(self.workspace()).unwrap().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            found.insert(format!("{}={text}", entry.file_name().display()));
        }
        found
    }
}

fn of(files: &[&str]) -> BTreeSet<String> {
    files.iter().map(|&file| file.to_owned()).collect()
}

fn changes_stay_in_the_view() {
    let lab = Lab::new("w");
    for name in ["changed", "deleted", "moved"] {
        fs::write(lab.workspace().join(name), "before").unwrap();
    }
    let script = "echo -n after >changed; rm deleted; mv moved there; mkdir d; echo new >d/f; cat changed there; ls";
    let (exit, out, err) = run(jail(), lab.spec(script));
    assert!(exit.success(), "{out} {err}");
    assert_eq!(out, "afterbeforechanged\nd\nthere\n", "{err}");
    assert_eq!(
        lab.files(),
        of(&["changed=before", "deleted=before", "moved=before"])
    );
    let upper = lab.view().upper;
    let read = |name: &str| fs::read_to_string(upper.join(name)).unwrap();
    assert_eq!((&*read("changed"), &*read("d/f")), ("after", "new\n"));
    for gone in ["deleted", "moved"] {
        let mark = fs::symlink_metadata(upper.join(gone)).unwrap();
        assert!(
            mark.file_type().is_char_device() && mark.rdev() == 0,
            "{gone}"
        );
    }
}

fn hidden() {
    let lab = Lab::new("w");
    fs::create_dir(lab.workspace().join("d")).unwrap();
    fs::write(lab.workspace().join("d/secret"), "secret").unwrap();
    symlink("d/secret", lab.workspace().join("link")).unwrap();
    let mut spec = lab.spec("cat d/secret link; mv d e; cat e/secret; ln d/secret hard; cat hard");
    spec.mounts.guards.push(PathGuard::hide_file("d/secret"));
    let (_, out, err) = run(jail(), spec);
    assert_eq!(out, "", "{err}");
}

fn sockets() {
    let lab = Lab::new("w");
    let _listener = UnixListener::bind(lab.workspace().join("socket")).unwrap();
    let script = "import socket; s = socket.socket(socket.AF_UNIX); print(s.connect_ex('socket'))";
    let mut spec = lab.spec("true");
    spec.program = haft_sandbox::Program::Argv(["python3", "-c", script].map(Into::into).into());
    let (_, out, err) = run(jail(), spec);
    assert_eq!(out.trim(), "111", "ECONNREFUSED: {err}");
}

fn names() {
    let lab = Lab::new("a:b,c\\d e\"f");
    fs::write(lab.workspace().join("file"), "before").unwrap();
    let (exit, _, err) = run(jail(), lab.spec("echo after >file"));
    assert!(exit.success(), "{err}");
    assert_eq!(lab.files(), of(&["file=before"]));
    let upper = lab.view().upper.join("file");
    assert_eq!(fs::read_to_string(upper).unwrap(), "after\n");
}

fn refused(sandbox: &haft_sandbox::Sandbox, spec: CommandSpec) -> StartError {
    wait(sandbox.start(spec)).err().unwrap()
}

fn inside() {
    let lab = Lab::new("w");
    let mut spec = lab.spec("true");
    for part in ["upper", "work"] {
        let folder = lab.workspace().join(part);
        fs::create_dir(&folder).unwrap();
        let mut view = lab.view();
        match part {
            "upper" => view.upper = folder,
            _ => view.work = folder,
        }
        spec.mounts.view = Some(view);
        let error = refused(jail(), spec.clone());
        assert!(matches!(error, StartError::Spec(_)), "{error}");
    }
}

/// Returns a spec whose HOME shows a view of another lab's folder.
fn with_home(lab: &Lab, home: &Lab, at: &str, script: &str) -> CommandSpec {
    let mut spec = lab.spec(script);
    spec.mounts.home.push(HomeFolder {
        folder: Some(home.workspace()),
        at: at.into(),
        view: home.view(),
    });
    spec
}

fn home() {
    let (lab, home) = (Lab::new("w"), Lab::new("cache"));
    fs::write(home.workspace().join("old"), "old").unwrap();
    let script = "cd ~/.tool/cache && cat old && echo -n new >new && rm old; touch ~/.tool/own";
    let (exit, out, err) = run(jail(), with_home(&lab, &home, ".tool/cache", script));
    assert!(exit.success() && out == "old", "{out} {err}");
    assert_eq!(home.files(), of(&["old=old"]));
    // The next command finds what the first one left.
    let script = "cat ~/.tool/cache/new; ls ~/.tool/cache";
    let mut spec = with_home(&lab, &home, ".tool/cache", script);
    spec.mounts.view = None;
    let (_, out, err) = run(jail(), spec);
    assert_eq!(out, "newnew\n", "{err}");
}

fn outside_home() {
    let (lab, home) = (Lab::new("w"), Lab::new("cache"));
    for at in ["../x", "/x", "a/../../x"] {
        let error = refused(jail(), with_home(&lab, &home, at, "true"));
        assert!(matches!(error, StartError::Spec(_)), "{at}: {error}");
    }
}

fn too_weak() {
    let lab = Lab::new("w");
    let weak = Strength::LandlockSeccomp;
    for sandbox in [&at_most(weak, weak), &drivers()[0]] {
        let error = refused(sandbox, lab.spec("true"));
        assert!(matches!(error, StartError::NoView(_)), "{error}");
    }
}
