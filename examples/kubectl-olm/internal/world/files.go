// SPDX-License-Identifier: Apache-2.0

package world

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/olmcore/decode"
)

// Files is what is read from files.
type Files struct {
	// Names are files, folders, and "-" for Stdin.
	Names []string
	Stdin io.Reader
	// Complete: kinds of which the files have no objects have none.
	Complete bool
	Now      time.Time
	// Kinds are those that the command looks at.
	Kinds []schema.GroupVersionKind
	// Catalogs need no CatalogSource in the files.
	Catalogs *dryrun.Catalogs
	// Progress hears what is being read.
	Progress func(what string)
}

// extensions are those of the files of a folder that are read.
var extensions = []string{".yaml", ".yml", ".json"}

// Load reads the files. The error names what cannot be read; files without an object are one.
func (f Files) Load() (*World, error) {
	var read []decode.Object
	for _, name := range f.Names {
		found, err := f.load(name)
		if err != nil {
			return nil, err
		}
		read = append(read, found...)
	}
	if len(read) == 0 {
		return nil, errors.New("the input has no objects")
	}
	w, err := New(read, dryrun.Scopes(read, f.Complete, f.Catalogs), f.Now)
	if err != nil {
		return nil, err
	}
	w.Problems = dryrun.Spellings(read)
	for _, gvk := range f.Kinds {
		if !w.Holds(gvk.GroupKind(), "") {
			w.Unread[gvk.GroupKind()] = "the input has none; with --complete there are none"
		}
	}
	return w, nil
}

func (f Files) load(name string) ([]decode.Object, error) {
	if name == "-" {
		f.Progress("stdin")
		return decode.Read("stdin", f.Stdin)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		f.Progress(name)
		return dryrun.Read([]string{name}, nil)
	}
	var names []string
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains(extensions, filepath.Ext(path)) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: the folder has no file that ends in .yaml, .yml or .json", name)
	}
	f.Progress(name)
	return dryrun.Read(names, nil)
}
