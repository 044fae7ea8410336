// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"flag"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// Flags are those of a command that reads registries.
type Flags struct {
	options Options
	read    bool
}

// BindFlags adds them to the flags of a command; on says whether registries are read without a flag.
func BindFlags(flags *flag.FlagSet, on bool) *Flags {
	f := &Flags{}
	flags.BoolVar(&f.read, "registries", on, "read the content of CatalogSources from their registries, over gRPC, unless --catalog has it")
	flags.Int64Var(&f.options.MaxBytes, "registry-max-bytes", DefaultMaxBytes, "how much one catalog's registry may send, and its content take in memory")
	flags.Int64Var(&f.options.MaxNamespaceBytes, "registry-max-namespace-bytes", 0, "the same for all catalogs of one namespace together (default four times --registry-max-bytes)")
	flags.IntVar(&f.options.MaxBundles, "registry-max-bundles", DefaultMaxBundles, "how many bundles it may send, each once for every channel")
	flags.DurationVar(&f.options.Timeout, "registry-timeout", DefaultTimeout, "how long it may be silent while it is read; all of it may take ten times as long")
	return f
}

// Serve is New and Clients.Serve; the Clients are nil when nothing is to be read. What of a catalog cannot be used is
// written to out, a line for each.
func (f *Flags) Serve(catalogs *controllers.Catalogs, o *controllers.Options, out io.Writer) (*Clients, error) {
	if !f.read {
		return nil, nil
	}
	f.options.Catalogs = catalogs
	f.options.Told = func(catalog types.NamespacedName, problems []olmcore.Diagnostic) {
		for _, p := range problems {
			fmt.Fprintf(out, "catalog %s: %s %s: %s\n", catalog, p.Reason, p.Path, p.Message)
		}
	}
	clients, err := New(f.options)
	if err != nil {
		return nil, err
	}
	clients.Serve(o)
	return clients, nil
}
