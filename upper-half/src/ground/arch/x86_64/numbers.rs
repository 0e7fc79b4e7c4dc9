//! The way from a handle that is a number to its object, in stubs that are written out: as in `narrow::known`.

/// Assembly that puts the object of a handle of one kind into a register, or goes to `long`. R11 must lead to `narrow::KNOWN`. For the register that takes the
/// object, the lower half's name is given too; for the handle's register, that and its last byte. The operands `long`, `number` and that of the `kind` are the
/// caller's.
macro_rules! object_of {
    ($handle:literal, $byte:literal => $object:literal, $half:literal, $kind:literal) => {
        $crate::ground::arch::object_of!($handle, $byte => $object, $half, $kind, "{long}")
    };
    ($handle:literal, $byte:literal => $object:literal, $half:literal, $kind:literal, $otherwise:literal) => {
        concat!(
            "movzx ", $half, ", ", $byte, "\n",
            "mov ", $object, ", [r11 + ", $object, " * 8 + {", $kind, "}]\n",
            "cmp [", $object, " + {number}], ", $handle, "\n",
            "jne ", $otherwise,
        )
    };
}
pub(crate) use object_of;
