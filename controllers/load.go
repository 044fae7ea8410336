// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// Loaded is the content of one CatalogSource as it was read.
type Loaded struct {
	CatalogSource types.NamespacedName
	Packages      []resolution.Package
	// Problems are what cannot be used of it.
	Problems []olmcore.Diagnostic
}

// Load reads the content of one CatalogSource from NAMESPACE/NAME=PATH, where PATH is a file-based catalog: a file, .gz
// allowed, or a folder. The first one's namespace becomes the GlobalNamespace, unless there is one.
func (c *Catalogs) Load(value string) (Loaded, error) {
	key, path, err := CatalogFile(value)
	if err != nil {
		return Loaded{}, err
	}
	packages, unread, err := ReadCatalog(path, fbc.Options{})
	if err != nil {
		return Loaded{}, err
	}
	built, unusable := resolution.Build(packages)
	if c.Content == nil {
		c.Content = map[types.NamespacedName]*resolution.Catalog{}
	}
	c.Content[key], c.GlobalNamespace = built, cmp.Or(c.GlobalNamespace, key.Namespace)
	return Loaded{CatalogSource: key, Packages: packages, Problems: append(unread, unusable...)}, nil
}

// Set is Load as a method of flag.Value.
func (c *Catalogs) Set(value string) error {
	_, err := c.Load(value)
	return err
}

// String implements flag.Value.
func (c *Catalogs) String() string { return "" }

// CatalogFile splits NAMESPACE/NAME=PATH, which says where the content of a CatalogSource is.
func CatalogFile(value string) (source types.NamespacedName, path string, err error) {
	name, path, ok := strings.Cut(value, "=")
	namespace, name, named := strings.Cut(name, "/")
	if !ok || !named || namespace == "" || name == "" || path == "" {
		return types.NamespacedName{}, "", fmt.Errorf("%q is not NAMESPACE/NAME=PATH", value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, path, nil
}

// ReadCatalog reads a file-based catalog: a file, .gz allowed, or a folder. What comes back is that of fbc.Load.
func ReadCatalog(path string, o fbc.Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return fbc.Load(os.DirFS(path), ".", o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return fbc.Read(path, f, o)
}
