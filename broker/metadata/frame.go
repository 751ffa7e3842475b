package metadata

// Cut splits the records of one change into edits of at most most bytes each, in
// encoded form. Where one edit is not enough and atomic is set, the edits are made a
// frame with this id, so that readers see all of the change or nothing (A15). Fencing
// is not framed: each of its records is right by itself. One record above the bound
// is our mistake and panics in the journal; the controller writes at most 1 000
// slots a record.
func Cut(id uint64, records []Record, most int, atomic bool) [][]byte {
	const frameBytes = 16 // of the record that a framed edit begins with
	var edits [][]Record
	var edit []Record
	size := 0
	for _, r := range records {
		n := len(Encode(nil, []Record{r}))
		if len(edit) > 0 && size+n > most-frameBytes {
			edits = append(edits, edit)
			edit, size = nil, 0
		}
		edit = append(edit, r)
		size += n
	}
	edits = append(edits, edit)

	out := make([][]byte, len(edits))
	for i, e := range edits {
		if atomic && len(edits) > 1 {
			e = append([]Record{Frame{id, frameState(i, len(edits))}}, e...)
		}
		out[i] = Encode(nil, e)
	}
	return out
}

func frameState(i, n int) FrameState {
	switch i {
	case 0:
		return FrameBegin
	case n - 1:
		return FrameEnd
	default:
		return FrameMore
	}
}
