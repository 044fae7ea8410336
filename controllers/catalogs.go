// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// Catalogs is the content of CatalogSources by namespace and name, and the resolver over it: a flag.Value that loads
// file-based catalogs. Its methods Resolve, Fingerprint and Known are values for Options.Resolve, Options.Fingerprint
// and Options.CatalogsOf, which Serve sets.
type Catalogs struct {
	// GlobalNamespace is the namespace whose CatalogSources all namespaces see.
	GlobalNamespace string
	Content         map[types.NamespacedName]*resolution.Catalog
	// Resolved, when set, hears what was asked and answered.
	Resolved func(resolution.Input, resolution.Result)
}

// Serve makes Options resolve from the content, if there is any: it sets Resolve, Fingerprint and CatalogsOf. Both have
// the same GlobalNamespace then: that of o if it has one, else the content's.
func (c *Catalogs) Serve(o *Options) {
	if c.Content == nil {
		return
	}
	o.GlobalNamespace = cmp.Or(o.GlobalNamespace, c.GlobalNamespace)
	c.GlobalNamespace = o.GlobalNamespace
	o.Resolve, o.Fingerprint, o.CatalogsOf = c.Resolve, c.Fingerprint, c.Known
}

// Resolve answers what a namespace asks for.
func (c *Catalogs) Resolve(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	in, err := resolution.Gather(ctx, r, request.Namespace, c.GlobalNamespace, c.Content)
	if err != nil {
		return olmcore.Resolution{}, err
	}
	result := resolution.Resolve(in)
	if c.Resolved != nil {
		c.Resolved(in, result)
	}
	return result.Resolution, nil
}

// Fingerprint says what Resolve's answers for a namespace depend on besides its Subscriptions: a value for
// Options.Fingerprint.
func (c *Catalogs) Fingerprint(ctx context.Context, r olmcore.Reader, namespace string) (string, error) {
	in, err := resolution.Gather(ctx, r, namespace, c.GlobalNamespace, c.Content)
	if err != nil {
		return "", err
	}
	return in.Fingerprint(), nil
}

// Known says what is known of the catalogs of a namespace, with the deprecations of the packages that its Subscriptions
// name: a value for Options.CatalogsOf.
func (c *Catalogs) Known(ctx context.Context, r olmcore.Reader, namespace string) (*subscription.Catalogs, error) {
	known, err := subscription.GatherCatalogs(ctx, r, namespace, c.GlobalNamespace)
	if err != nil {
		return nil, err
	}
	subs, err := olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range subs {
		if s.Spec == nil {
			continue
		}
		catalog := types.NamespacedName{Namespace: s.Spec.CatalogSourceNamespace, Name: s.Spec.CatalogSource}
		known.Entries = append(known.Entries, entriesOf(catalog, c.Content[catalog], s.Spec.Package)...)
	}
	return known, nil
}

// entriesOf lists the bundles of a package as subscription wants them.
func entriesOf(key types.NamespacedName, content *resolution.Catalog, pkg string) []subscription.Entry {
	var entries []subscription.Entry
	for _, channel := range content.Channels(pkg) {
		for _, bundle := range content.Chain(pkg, channel) {
			e := subscription.Entry{Catalog: key, Package: pkg, Channel: channel, Bundle: bundle}
			for _, d := range content.Deprecations(pkg) {
				switch {
				case d.Bundle == bundle:
					e.BundleDeprecation = &d.Message
				case d.Channel == channel:
					e.ChannelDeprecation = &d.Message
				case d.Bundle == "" && d.Channel == "":
					e.PackageDeprecation = &d.Message
				}
			}
			entries = append(entries, e)
		}
	}
	return entries
}
