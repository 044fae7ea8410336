// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/subscription/resolution"
)

// parseRegistry reads NAMESPACE/NAME=HOST:PORT.
func parseRegistry(value string) (key types.NamespacedName, address string, err error) {
	source, address, _ := strings.Cut(value, "=")
	namespace, name, _ := strings.Cut(source, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") || !strings.Contains(address, ":") {
		return key, "", fmt.Errorf("--registry %q is not NAMESPACE/NAME=HOST:PORT", value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, address, nil
}

// connectTimeout is how long a registry may take to answer at all.
const connectTimeout = 10 * time.Second

// errNoContent says what to do where no catalog's content is known.
var errNoContent = errors.New("the content of no catalog is known: name a file with --catalog NAMESPACE/NAME=PATH, or forward the port of " +
	"a registry (kubectl port-forward -n NAMESPACE svc/NAME 50051) and say --registry NAMESPACE/NAME=localhost:50051")

// readContent reads the catalogs that --registry names and, within a cluster, those whose CatalogSources have an
// address. From outside of it no address is dialled that a CatalogSource names: anybody who may write one would choose
// it.
func readContent(ctx context.Context, r *root, w *world.World, isRequired bool) error {
	addresses := map[types.NamespacedName]string{}
	for _, value := range r.registries {
		key, address, err := parseRegistry(value)
		if err != nil {
			return err
		}
		if err := readRegistry(ctx, r, key, address); err != nil {
			return fmt.Errorf("--registry %s: %w", value, err)
		}
	}
	if w.Live && inCluster() {
		for _, o := range w.Objects() {
			s, is := o.(*v1alpha1.CatalogSource)
			if !is {
				continue
			}
			if connection := s.Status.GRPCConnectionState; connection != nil && connection.Address != "" {
				addresses[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = connection.Address
			}
		}
	}
	for key, address := range addresses {
		if r.catalogs.Content[key] != nil {
			continue
		}
		if err := readRegistry(ctx, r, key, address); err != nil {
			say(r.ErrOut, "not read: the catalog %s: %s", key, err)
		}
	}
	if isRequired && len(r.catalogs.Content) == 0 {
		return errNoContent
	}
	return nil
}

// readRegistry reads the content of one catalog.
func readRegistry(ctx context.Context, r *root, key types.NamespacedName, address string) error {
	connector, err := registry.NewConnector(registry.Options{Catalogs: &controllers.Catalogs{}})
	if err != nil {
		return err
	}
	conn, err := connector.Connect(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	told, done := progress(r.ErrOut)
	defer done()
	last := "it does not answer"
	ready, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := conn.Ready(ready, func(problem string) { last = problem }); err != nil {
		return errors.New(last)
	}
	var all []resolution.Package
	_, err = conn.Read(ctx, func(p registry.Package) error {
		all = append(all, p.Package)
		told(fmt.Sprintf("the catalog %s (%s)", key, count(len(all), "package")))
		return nil
	})
	if err != nil {
		problem, _ := registry.Problem(err)
		return errors.New(problem)
	}
	content, _ := resolution.Build(all)
	if r.catalogs.Content == nil {
		r.catalogs.Content = map[types.NamespacedName]*resolution.Catalog{}
	}
	if r.catalogs.Packages == nil {
		r.catalogs.Packages = map[types.NamespacedName][]resolution.Package{}
	}
	r.catalogs.Content[key], r.catalogs.Packages[key] = content, all
	return nil
}
