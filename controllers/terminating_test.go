// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// namespaceReads reads Namespaces so many times, and fails then.
type namespaceReads struct {
	olmcore.Reader
	left int
}

func (r *namespaceReads) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if gvk.Kind == "Namespace" {
		if r.left--; r.left < 0 {
			return nil, errors.New("no answer")
		}
	}
	return r.Reader.Get(ctx, gvk, namespace, name)
}

// TestADecisionOutlivesAFailedReadOfItsNamespace: what was decided is remembered as told by then.
func TestADecisionOutlivesAFailedReadOfItsNamespace(t *testing.T) {
	c, _, _ := started(t)
	source := &v1alpha1.CatalogSource{ObjectMeta: named("image"), Spec: v1alpha1.CatalogSourceSpec{
		SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:1", GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted},
	}}
	require.NoError(t, c.Create(source))
	decided := func(reads int) (actions []olmcore.Action, left int, err error) {
		catalogs, reader := controllerOf(t, controllers.New(&controllers.Options{}), controllers.Catalog), &namespaceReads{c, reads}
		result, err := catalogs.Reconcile(t.Context(), reader, types.NamespacedName{Namespace: "ops", Name: "image"}, noon, nil)
		return result.Actions, reader.left, err
	}
	const many = 100
	want, left, err := decided(many)
	require.NoError(t, err)
	require.NotEmpty(t, want)
	got, left, err := decided(many - left - 1) // all but the last, which comes after the decision
	require.NoError(t, err)
	require.Equal(t, -1, left)
	require.Equal(t, want, got)
}
