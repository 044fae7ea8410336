// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/terms"
	"github.com/olmcore/olm/olmcore"
)

// found is an index of objects by their terms that takes in each change of one.
type found struct {
	lookup olmcore.Lookup

	mu    sync.Mutex
	index *terms.Index
	// outdated are the names of objects that changed since they were read. The index does not have them.
	outdated map[types.NamespacedName]struct{}
}

// Find implements olmcore.IndexedReader. It reads the objects that changed since the last call again, one by one.
func (x *Indexes) Find(ctx context.Context, r olmcore.Reader, l olmcore.Lookup, by ...olmcore.Term) ([]olmcore.Object, error) {
	var failed error
	of, _ := x.Index(l.Kind, l.Namespace, l.Key, func() any {
		all, err := olmcore.ListKind(ctx, r, l.Kind, l.Namespace, nil)
		if err != nil {
			failed = fmt.Errorf("list %s in %q: %w", l.Kind.Kind, l.Namespace, err)
			return nil
		}
		return &found{lookup: l, index: terms.NewIndex(all, l.TermsOf), outdated: map[types.NamespacedName]struct{}{}}
	}).(*found)
	if failed != nil {
		return nil, failed
	}
	return of.find(ctx, r, by)
}

// outdate says that an object was added, changed or deleted.
func (f *found) outdate(o olmcore.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := terms.NameOf(o)
	f.index.Drop(name)
	f.outdated[name] = struct{}{}
}

func (f *found) find(ctx context.Context, r olmcore.Reader, by []olmcore.Term) ([]olmcore.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.outdated {
		o, err := olmcore.Fitting(r.Get(ctx, f.lookup.Kind, name.Namespace, name.Name))
		switch {
		case err == nil:
			f.index.Put(o)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get %s: %w", olmcore.Key{Kind: f.lookup.Kind.Kind, Namespace: name.Namespace, Name: name.Name}, err)
		}
		delete(f.outdated, name)
	}
	return f.index.Find(by...), nil
}
