//! Plans, written and read back.

use seccompiler::sock_filter;

use super::{
    BindMode, GuardedName, GuardedNames, JailNetwork, KernelLimits, LandlockGrant, PathCover,
    ProgramRole, RootEntry, SupervisorPlan,
};
use crate::command::AbsentGuard;
use crate::strength::Strength;

fn bind(source: &str, target: &str, kind: BindMode) -> RootEntry {
    RootEntry::Bind {
        source: source.into(),
        target: target.into(),
        kind,
    }
}

fn overlay() -> RootEntry {
    RootEntry::Overlay {
        target: "/w".into(),
        lower: "/w/x".into(),
        layer: Some("/y".into()),
        upper: Some(("/u".into(), "/k".into())),
    }
}

fn names() -> GuardedNames {
    let name = GuardedName {
        path: ".git/hooks".into(),
        folder: true,
        any_depth: false,
        absent: AbsentGuard::NewEntries,
    };
    GuardedNames {
        guarded: vec![name],
        approved: vec!["x".into()],
    }
}

fn entries() -> Vec<RootEntry> {
    vec![
        bind("/s", "/t", BindMode::Device),
        bind("/w", "/w", BindMode::Data),
        RootEntry::Link {
            target: "/l".into(),
            to: "usr/l".into(),
        },
        RootEntry::File {
            target: "/f".into(),
            bytes: vec![0, 1, 255],
        },
        RootEntry::Dir {
            target: "/d".into(),
        },
        RootEntry::PrivateDir {
            target: "/d/p".into(),
        },
        RootEntry::Hidden {
            target: "/d/h".into(),
        },
        RootEntry::Tmpfs {
            target: "/tmp".into(),
            megabytes: 7,
        },
        overlay(),
    ]
}

fn plan() -> SupervisorPlan {
    let mut plan = SupervisorPlan {
        net: JailNetwork::Host,
        ports: vec![443, 65_535],
        role: ProgramRole::Fresh,
        locks: vec![1, 0, 255],
        folder: "/f".into(),
        argv: vec!["a".into(), "".into(), "ü b".into()],
        env: vec!["X=1".into()],
        cwd: "/w".into(),
        stdin: Some(b"in\0put".to_vec()),
        converses: true,
        workspace: "/w".into(),
        entries: entries(),
        prepared: true,
        covers: vec![
            (".git".into(), PathCover::ReadOnly),
            ("x".into(), PathCover::Writable),
        ],
        grants: vec![
            ("/usr".into(), LandlockGrant::Execute),
            ("/w".into(), LandlockGrant::Write),
        ],
        caps: KernelLimits {
            data: 1,
            pids: 2,
            file: 3,
            cpu: 4,
            open_files: 5,
        },
        filters: vec![vec![sock_filter {
            code: 6,
            jt: 1,
            jf: 2,
            k: u32::MAX,
        }]],
        group: "/g/tasks".into(),
        watch: 1 << 40,
        watched: Some(names()),
        ..SupervisorPlan::default()
    };
    plan.set_strength(Strength::NoProc);
    plan
}

#[test]
fn a_plan_reads_back_as_it_was_and_a_cut_one_not_at_all() {
    let plan = plan();
    assert_eq!(plan.strength(), Strength::NoProc);
    let bytes = plan.encode();
    let (length, body) = bytes.split_at(4);
    assert_eq!(
        u32::from_ne_bytes(length.try_into().unwrap()) as usize,
        body.len()
    );
    assert_eq!(SupervisorPlan::decode(body), Some(plan));
    for cut in 0..body.len() {
        assert_eq!(SupervisorPlan::decode(&body[..cut]), None, "cut at {cut}");
    }
}
