// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// Catalogs is the content of CatalogSources by namespace and name, and the resolver over it: a flag.Value that loads
// file-based catalogs. Its methods Resolve, Fingerprint and Known are values for Options.Resolve, Options.Fingerprint
// and Options.CatalogsOf, which Serve sets. It must not be copied once it is used.
type Catalogs struct {
	// GlobalNamespace is the namespace whose CatalogSources all namespaces see.
	GlobalNamespace string
	// Content is that of files, which may be replaced while no controller runs. It comes before what Put is told.
	Content map[types.NamespacedName]*resolution.Catalog
	// Awaited: Put is to tell of each CatalogSource without Content. Until then what depends on it is not resolved.
	Awaited bool
	// Resolved, when set, hears what was asked and answered.
	Resolved func(resolution.Input, resolution.Result)

	mu  sync.RWMutex
	put map[types.NamespacedName]putState
}

// putState is what Put was told last, and how often its content was another one.
type putState struct {
	resolution.CatalogState
	reads int
}

// ErrPending is that of Options.Resolve when the answer is not known yet: the Subscriptions stay as they are, and ask
// again after a change, which may be one that Options.Watch delivers.
var ErrPending = errors.New("the answer is not known yet")

// Serve makes Options resolve from the content, if there is any or some is awaited: it sets Resolve, Fingerprint and
// CatalogsOf. Both have the same GlobalNamespace then: that of o if it has one, else the content's, else the default.
func (c *Catalogs) Serve(o *Options) {
	if c.Content == nil && !c.Awaited {
		return
	}
	o.GlobalNamespace = cmp.Or(o.GlobalNamespace, c.GlobalNamespace, DefaultGlobalNamespace)
	c.GlobalNamespace = o.GlobalNamespace
	o.Resolve, o.Fingerprint, o.CatalogsOf = c.Resolve, c.Fingerprint, c.Known
}

// Put takes what is known of the content of a CatalogSource from now on; without Content and without a Problem it is
// being read. The Priority does not count. Any number of controllers may run meanwhile.
func (c *Catalogs) Put(state resolution.CatalogState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.put == nil {
		c.put = map[types.NamespacedName]putState{}
	}
	next := putState{state, c.put[state.Key].reads}
	if state.Content != nil && state.Content != c.put[state.Key].Content {
		next.reads++
	}
	c.put[state.Key] = next
}

// Reads returns how often Put was told of new content of a CatalogSource, since it was dropped last.
func (c *Catalogs) Reads(key types.NamespacedName) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.put[key].reads
}

// Drop forgets what Put was told about a CatalogSource.
func (c *Catalogs) Drop(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.put, key)
}

// state is what is known of a CatalogSource.
func (c *Catalogs) state(key types.NamespacedName) resolution.CatalogState {
	if content := c.Content[key]; content != nil {
		return resolution.CatalogState{Content: content}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.put[key].CatalogState
}

// gather reads what Resolve looks at. pending: of a catalog that the namespace sees nothing is known yet.
func (c *Catalogs) gather(ctx context.Context, r olmcore.Reader, namespace string) (in resolution.Input, pending bool, err error) {
	if in, err = resolution.Gather(ctx, r, namespace, c.GlobalNamespace, nil); err != nil {
		return resolution.Input{}, false, err
	}
	for i := range in.Catalogs {
		to, known := &in.Catalogs[i], c.state(in.Catalogs[i].Key)
		pending = pending || c.Awaited && known.Content == nil && known.Problem == ""
		to.Content, to.Stale = known.Content, known.Stale
		if to.Content != nil || known.Problem != "" {
			to.Problem = known.Problem
		}
	}
	return in, pending, nil
}

// Resolve answers what a namespace asks for; ErrPending while it may depend on content that is awaited.
func (c *Catalogs) Resolve(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	in, pending, err := c.gather(ctx, r, request.Namespace)
	if err == nil && pending {
		err = ErrPending
	}
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
	in, _, err := c.gather(ctx, r, namespace)
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
		known.Entries = append(known.Entries, entriesOf(catalog, c.state(catalog).Content, s.Spec.Package)...)
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
