package tier

import "testing"

func TestNamesStayUnderTheRoot(t *testing.T) {
	for name, good := range map[string]bool{
		"": true, "a": true, "a/b.json": true, "_inprogress/0-1-2": true,
		"/a": false, "a/": false, "a//b": false, "..": false, "a/../b": false, "./a": false,
		"a:b": false, "a\nb": false, "a\xffb": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("CheckName(%q) = %v, want good %v", name, err, good)
		}
	}
}

func TestParentOfATopNameIsTheRoot(t *testing.T) {
	for _, c := range [][3]string{{"a", "", "a"}, {"a/b", "a", "b"}, {"a/b/c", "a/b", "c"}} {
		if dir, base := Parent(c[0]); dir != c[1] || base != c[2] {
			t.Errorf("Parent(%q) = %q, %q, want %q, %q", c[0], dir, base, c[1], c[2])
		}
	}
}
