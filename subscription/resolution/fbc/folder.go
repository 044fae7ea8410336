// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Load reads all files below root in the order of their names, and otherwise works like Read. root may be a single
// file, and "." selects all of fsys.
//
// Load skips these files:
//   - files that a file named .indexignore excludes, with the syntax of .gitignore
//   - files and folders whose names begin with two dots
//
// Load follows symbolic links, including the links of a mounted ConfigMap to folders whose names begin with two dots.
// It reports links that leave root, and special files such as named pipes, as unreadable.
func Load(fsys fs.FS, root string, o Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	a, err := newAssembly(o)
	if err != nil {
		return nil, nil, err
	}
	f := &folder{fsys: fsys, root: root, assembly: a, followed: map[string]bool{}}
	if f.resolved, err = f.resolve(root); err != nil {
		return nil, nil, &Error{File: root, Err: err}
	}
	if err := fs.WalkDir(fsys, root, f.visit); err != nil {
		return nil, nil, err
	}
	return f.assembly.result()
}

// folder is where Load is.
type folder struct {
	fsys fs.FS
	root string
	// resolved is root without links.
	resolved string
	assembly *assembly
	ignore   ignorer
	// followed are the folders that a link was followed to.
	followed map[string]bool
}

func (f *folder) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return &Error{File: name, Err: err}
	}
	if name != f.root && (strings.HasPrefix(path.Base(name), "..") || f.ignore.excludes(name, d.IsDir())) {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if d.IsDir() {
		return f.readIgnore(name)
	}
	if path.Base(name) == ignoreFile {
		return nil
	}
	target, info, problem := f.look(name)
	switch {
	case problem != nil:
		return f.assembly.report(ReasonUnreadableFile, Error{File: name, Err: problem})
	case !info.IsDir():
		return f.readFile(name)
	case !isHidden(target) || f.followed[target]:
		return nil // it is read where it is
	}
	f.followed[target] = true
	return fs.WalkDir(f.fsys, name, f.visit)
}

func isHidden(name string) bool {
	return strings.HasPrefix(name, "..") || strings.Contains(name, "/..")
}

var (
	errLeadsOut = errors.New("is a link that leads out of the folder")
	errLoops    = errors.New("is a link that leads through too many others")
)

// look returns where the links in a name lead, and what is there. A problem is why that must not be opened.
func (f *folder) look(name string) (target string, info fs.FileInfo, problem error) {
	if target, problem = f.resolve(name); problem != nil {
		return "", nil, problem
	}
	if f.resolved != "." && target != f.resolved && !strings.HasPrefix(target, f.resolved+"/") {
		return "", nil, errLeadsOut
	}
	if info, problem = fs.Stat(f.fsys, target); problem != nil {
		return "", nil, problem
	}
	if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeDir {
		return "", nil, fmt.Errorf("is neither a file nor a folder but of the type %s", kind)
	}
	return target, info, nil
}

func (f *folder) resolve(name string) (string, error) {
	resolved, links := ".", 0
	for elements := strings.Split(name, "/"); len(elements) > 0; {
		next := path.Join(resolved, elements[0])
		elements = elements[1:]
		if !fs.ValidPath(next) {
			return "", errLeadsOut
		}
		info, err := fs.Lstat(f.fsys, next)
		switch {
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			resolved = next
			continue
		}
		if links++; links > 40 {
			return "", errLoops
		}
		target, err := fs.ReadLink(f.fsys, next)
		switch {
		case err != nil:
			return "", err
		case path.IsAbs(target):
			return "", errLeadsOut
		}
		elements = append(strings.Split(target, "/"), elements...)
	}
	return resolved, nil
}

func (f *folder) readIgnore(dir string) error {
	name := path.Join(dir, ignoreFile)
	if _, err := fs.Lstat(f.fsys, name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, info, problem := f.look(name)
	if problem == nil && info.IsDir() {
		problem = errors.New("is a folder")
	}
	if problem != nil {
		return &Error{File: name, Err: problem} // what it excludes is not known
	}
	text, err := fs.ReadFile(f.fsys, name)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	f.ignore.add(dir, string(text))
	return nil
}

func (f *folder) readFile(name string) error {
	file, err := f.fsys.Open(name)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	defer file.Close()
	return f.assembly.read(name, file)
}
