// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/terms"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Scopes returns what the input tells of; complete: kinds that it has no objects of have none. Catalogs whose content
// was given need no CatalogSource.
func Scopes(read []decode.Object, complete bool, c *Catalogs) []olmcore.Scope {
	objects := make([]olmcore.Object, len(read))
	for i := range read {
		objects[i] = read[i].Object
	}
	scopes := decode.Scopes(objects, complete)
	if c != nil && len(c.Content) > 0 {
		scopes = append(scopes, olmcore.Scope{Kind: catalogSources})
	}
	return scopes
}

var catalogSources = schema.GroupKind{Group: "operators.coreos.com", Kind: "CatalogSource"}

// observed is the input as a Reader. It notes which kinds were asked for that the input does not tell of.
type observed struct {
	*olmcore.Snapshot
	asked   map[schema.GroupKind]bool
	indexes map[indexKey]any
	// guessing: what was not read is taken for absent, to find out what else would be asked for.
	guessing bool
}

func observe(cluster *fake.Cluster, scopes []olmcore.Scope) (*observed, error) {
	// Without scopes, namespaces that the cluster made for what is in them would count as read.
	told := map[schema.GroupKind]bool{}
	for _, s := range scopes {
		told[s.Kind] = true
	}
	objects := slices.DeleteFunc(cluster.Objects(), func(o olmcore.Object) bool { return !told[olmcore.GVKOf(o).GroupKind()] })
	snapshot, err := olmcore.NewSnapshot(objects, scopes...)
	return &observed{Snapshot: snapshot, asked: map[schema.GroupKind]bool{}, indexes: map[indexKey]any{}}, err
}

// indexKey: what is absent by a guess is not absent for a decision.
type indexKey struct {
	gvk            schema.GroupVersionKind
	namespace, key string

	guessing bool
}

// Index implements olmcore.IndexedReader: the input does not change.
func (r *observed) Index(gvk schema.GroupVersionKind, namespace, key string, build func() any) any {
	k := indexKey{gvk, namespace, key, r.guessing}
	index, kept := r.indexes[k]
	if !kept {
		index = build()
		r.indexes[k] = index
	}
	return index
}

// Find implements olmcore.IndexedReader.
func (r *observed) Find(ctx context.Context, reader olmcore.Reader, l olmcore.Lookup, by ...olmcore.Term) ([]olmcore.Object, error) {
	var failed error
	index, _ := r.Index(l.Kind, l.Namespace, l.Key, func() any {
		all, err := olmcore.ListKind(ctx, reader, l.Kind, l.Namespace, nil)
		failed = err
		if err != nil {
			return nil
		}
		return terms.NewIndex(all, l.TermsOf)
	}).(*terms.Index)
	if index == nil {
		return nil, failed
	}
	return index.Find(by...), nil
}

// ListMetadata implements olmcore.IndexedReader.
func (r *observed) ListMetadata(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector,
) ([]olmcore.Object, error) {
	return r.List(ctx, gvk, namespace, selector)
}

// Get implements olmcore.Reader.
func (r *observed) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o, err := r.Snapshot.Get(ctx, gvk, namespace, name)
	if err = r.note(gvk, err); r.guessing && errors.Is(err, olmcore.ErrNotRead) {
		err = apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name)
	}
	return o, err
}

// List implements olmcore.Reader.
func (r *observed) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	objects, err := r.Snapshot.List(ctx, gvk, namespace, selector)
	if err = r.note(gvk, err); r.guessing && errors.Is(err, olmcore.ErrNotRead) {
		err = nil
	}
	return objects, err
}

// note keeps what was not read.
func (r *observed) note(gvk schema.GroupVersionKind, err error) error {
	if errors.Is(err, olmcore.ErrNotRead) {
		r.asked[gvk.GroupKind()] = true
	}
	return err
}

// unreadKind is a kind that the input does not tell of although a decision needs it.
type unreadKind struct {
	Kind string `json:"kind"`
	// Resource is its name for kubectl get.
	Resource string `json:"resource"`
	// Unknown says what cannot be told without it.
	Unknown string `json:"unknown,omitempty"`

	of schema.GroupKind
}

// unread returns the kinds that were asked for, sorted by resource.
func unread(asked map[schema.GroupKind]bool) []unreadKind {
	var all []unreadKind
	for gk := range asked {
		k, known := olmcore.KindOf(gk)
		one := unreadKind{Kind: gk.Kind, Resource: k.Resource(), Unknown: k.Unknown, of: gk}
		if !known {
			one.Resource, one.Unknown = strings.ToLower(gk.Kind)+"."+gk.Group, "what there is of them"
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b unreadKind) int { return cmp.Compare(a.Resource, b.Resource) })
	return all
}

func printUnread(b *strings.Builder, kinds []unreadKind, help string) {
	if len(kinds) == 0 {
		return
	}
	width := 0
	for _, k := range kinds {
		width = max(width, len(k.Resource))
	}
	b.WriteString("\nThe input has none of these kinds, so what they would tell is left open:\n")
	for _, k := range kinds {
		row(b, "  %-*s  %s", width, k.Resource, k.Unknown)
	}
	if help != "" {
		row(b, "%s", help)
	}
}
