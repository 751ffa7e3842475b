// Package docs holds Varve's documents and the tests that keep them true.
package docs

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "varve/"

// A rule is one line of layers.txt.
type rule struct {
	may  []string
	pure bool
}

// impure are the packages that a pure room may not import.
var impure = []string{"net", "os", "os/exec", "sync", "sync/atomic", "math/rand", "math/rand/v2", "syscall", "time/tzdata"}

// clock are the functions of time that a pure room may not call.
var clock = []string{"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Since", "Until", "Tick"}

// TestImportsKeepToTheLayers holds every package to its line in layers.txt.
func TestImportsKeepToTheLayers(t *testing.T) {
	rules := readRules(t, "layers.txt")
	packages := parsePackages(t, "..")
	for dir, files := range packages {
		r, ok := rules[dir]
		if !ok {
			t.Errorf("%s is not in docs/layers.txt", dir)
			continue
		}
		for _, f := range files {
			checkImports(t, dir, f, r)
			if r.pure {
				checkPure(t, dir, f)
			}
		}
	}
	for dir := range rules {
		if packages[dir] == nil {
			t.Errorf("docs/layers.txt lists %s, which is not there", dir)
		}
	}
}

// TestEveryPackageSaysWhatItIs wants one package comment each, beginning with the
// package's name.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for dir, files := range parsePackages(t, "..") {
		var docs []string
		for _, f := range files {
			if f.Doc != nil {
				docs = append(docs, f.Doc.Text())
			}
		}
		if len(docs) != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, len(docs))
			continue
		}
		name := files[0].Name.Name
		if want := "Package " + name; name != "main" && !strings.HasPrefix(docs[0], want) {
			t.Errorf("%s: package comment begins %.30q, want %q", dir, docs[0], want)
		}
	}
}

func checkImports(t *testing.T, dir string, f *ast.File, r rule) {
	t.Helper()
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(path, module); ok && !slices.Contains(r.may, own) {
			t.Errorf("%s imports %s; docs/layers.txt does not let it", dir, own)
		}
		if r.pure && slices.Contains(impure, path) {
			t.Errorf("%s is marked pure and imports %s", dir, path)
		}
	}
}

func checkPure(t *testing.T, dir string, f *ast.File) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s is marked pure and starts a goroutine", dir)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				t.Errorf("%s is marked pure and calls time.%s", dir, n.Sel.Name)
			}
		}
		return true
	})
}

func readRules(t *testing.T, name string) map[string]rule {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	rules := map[string]rule{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line, _, _ := strings.Cut(sc.Text(), "#")
		dir, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		var r rule
		for _, w := range strings.Fields(rest) {
			if w == "pure" {
				r.pure = true
				continue
			}
			if _, above := rules[w]; !above {
				t.Errorf("%s: %s may import %s, which is not above it", name, dir, w)
			}
			r.may = append(r.may, w)
		}
		dir = strings.TrimSpace(dir)
		if _, twice := rules[dir]; twice {
			t.Errorf("%s lists %s twice", name, dir)
		}
		rules[dir] = r
	}
	return rules
}

// parsePackages reads every package of the module but its tests, keyed by folder.
func parsePackages(t *testing.T, root string) map[string][]*ast.File {
	t.Helper()
	packages := map[string][]*ast.File{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		packages[filepath.ToSlash(dir)] = append(packages[filepath.ToSlash(dir)], f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}
