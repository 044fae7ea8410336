// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// catalogs is the content of CatalogSources, read from files: a stand-in for what
// a registry serves.
type catalogs struct{ controllers.Catalogs }

// Set reads the content of one CatalogSource, from a folder or a file.
func (c *catalogs) Set(value string) error {
	name, path, ok := strings.Cut(value, "=")
	namespace, name, named := strings.Cut(name, "/")
	if !ok || !named || namespace == "" || name == "" || path == "" {
		return fmt.Errorf("%q is not NAMESPACE/NAME=PATH", value)
	}
	packages, err := read(path)
	if err != nil {
		return err
	}
	if c.Content == nil {
		c.Content = map[types.NamespacedName]*resolution.Catalog{}
	}
	c.Content[types.NamespacedName{Namespace: namespace, Name: name}], _ = resolution.Build(packages)
	return nil
}

// String implements flag.Value.
func (c *catalogs) String() string { return "" }

func read(path string) ([]resolution.Package, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		packages, _, err := fbc.Load(os.DirFS(path), ".", fbc.Options{})
		return packages, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packages, _, err := fbc.Read(path, f, fbc.Options{})
	return packages, err
}
