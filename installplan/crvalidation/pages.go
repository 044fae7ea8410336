// SPDX-License-Identifier: Apache-2.0

package crvalidation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// Pager lists the objects of a kind in all namespaces, in pages. olmdynamic.Cluster implements it. A page is the JSON
// list of the API server. The list is not decoded as a whole, because decoded objects may be thirty times as large.
type Pager interface {
	// ListPage returns a list of at most limit objects. from is metadata.continue of the previous page, or empty for
	// the first page.
	ListPage(ctx context.Context, gvk schema.GroupVersionKind, limit int, from string) ([]byte, error)
}

// Live returns a function for controllers.Options.Judge. The function works like Judge, but reads the resources from p
// in pages. The function ignores its Reader, which may be a cache. It keeps at most one page in memory, and reads only
// the pages that it validates.
func Live(p Pager) func(context.Context, olmcore.Reader, []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
	return func(ctx context.Context, _ olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
		return judgeWithin(ctx, inPages(p), changes, maxResources, maxFindings)
	}
}

// pageSize is how many custom resources are read at once. An API server accepts objects of up to 1.5 MiB.
const pageSize = 20

// reading reads the page of objects of a kind that starts at a position of the previous page, or the first page if it
// is empty.
type reading func(ctx context.Context, gvk schema.GroupVersionKind, from string) (page, error)

// page contains some custom resources, and the position of the next page, which is empty after the last one. left is
// how many custom resources follow. If the number is not known, it is 1.
type page struct {
	size     int
	resource func(i int) (olmcore.Object, error)
	next     string
	left     int
}

// all reads everything as one page, sorted by namespace and name.
func all(r olmcore.Reader) reading {
	return func(ctx context.Context, gvk schema.GroupVersionKind, _ string) (page, error) {
		resources, err := r.List(ctx, gvk, "", nil)
		if err != nil {
			return page{}, err
		}
		resources = slices.DeleteFunc(slices.Clone(resources), func(o olmcore.Object) bool { return olmcore.KeyOf(o) == (olmcore.Key{}) })
		slices.SortFunc(resources, func(a, b olmcore.Object) int {
			return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
		})
		return page{size: len(resources), resource: func(i int) (olmcore.Object, error) { return resources[i], nil }}, nil
	}
}

// inPages reads pages in the order of the API server, which is by namespace and name.
func inPages(p Pager) reading {
	return func(ctx context.Context, gvk schema.GroupVersionKind, from string) (page, error) {
		text, err := p.ListPage(ctx, gvk, pageSize, from)
		if err != nil {
			return page{}, err
		}
		var list struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return page{}, err
		}
		read := page{size: len(list.Items), next: list.Metadata.Continue, resource: func(i int) (olmcore.Object, error) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			return u, utiljson.Unmarshal(list.Items[i], &u.Object)
		}}
		if read.next != "" {
			read.left = 1
			if n := list.Metadata.RemainingItemCount; n != nil {
				read.left = max(1, int(*n))
			}
		}
		return read, nil
	}
}

// remedy returns advice about an error of listing the custom resources of a definition, or an empty string.
func remedy(crd *apiextensionsv1.CustomResourceDefinition, err error) string {
	if olmcore.Classify(err) != olmcore.Forbidden {
		return ""
	}
	return fmt.Sprintf(
		"; bind the account that judges to a ClusterRole with the rule {apiGroups: [%s], resources: [%s], verbs: [list]}, or judge no custom resources (--judge=false)",
		crd.Spec.Group,
		crd.Spec.Names.Plural,
	)
}
