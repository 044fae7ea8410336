// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// Catalogs is the content of CatalogSources, read from files: a stand-in for what
// a registry serves. Its method Resolve is a value for Options.Resolve.
type Catalogs struct {
	// GlobalNamespace is the namespace whose CatalogSources all namespaces see.
	GlobalNamespace string
	Content         map[types.NamespacedName]*resolution.Catalog
}

// Resolve answers what a namespace asks for.
func (c *Catalogs) Resolve(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	in, err := resolution.Gather(ctx, r, request.Namespace, c.GlobalNamespace, c.Content)
	if err != nil {
		return olmcore.Resolution{}, err
	}
	return resolution.Resolve(in).Resolution, nil
}

// Set reads the content of one CatalogSource from NAMESPACE/NAME=PATH, a folder or
// file of a file-based catalog. It implements flag.Value.
func (c *Catalogs) Set(value string) error {
	name, path, ok := strings.Cut(value, "=")
	namespace, name, named := strings.Cut(name, "/")
	if !ok || !named || namespace == "" || name == "" || path == "" {
		return fmt.Errorf("%q is not NAMESPACE/NAME=PATH", value)
	}
	packages, err := readCatalog(path)
	if err != nil {
		return err
	}
	content, _ := resolution.Build(packages)
	if c.Content == nil {
		c.Content = map[types.NamespacedName]*resolution.Catalog{}
	}
	c.Content[types.NamespacedName{Namespace: namespace, Name: name}] = content
	return nil
}

// String implements flag.Value.
func (c *Catalogs) String() string { return "" }

func readCatalog(path string) ([]resolution.Package, error) {
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
