//! The binary is linked as the build script says: with packed relocations if the system supports them. The other tests start it.

#[test]
fn the_binarys_relocations_are_packed_where_the_system_reads_them() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_haft")).unwrap();
    let packed = binary.windows(9).any(|bytes| bytes == b".relr.dyn");
    assert_eq!(packed, env!("HAFT_RELOCATIONS") == "packed");
}
