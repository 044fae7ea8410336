// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	storagev1 "k8s.io/api/storage/v1"
)

// TestOneRowAddsAKind shows that the table is all there is to a kind.
func TestOneRowAddsAKind(t *testing.T) {
	added := row(
		storagev1.SchemeGroupVersion,
		&storagev1.StorageClassList{},
		false,
		"storageclasses",
		WatchAll,
		by(byCSV),
		"which volumes operators get",
	)
	table := newKindTable(append(slices.Clone(kinds), added))
	got := table.byGroupKind[added.GroupKind()]
	require.Equal(t, "StorageClass", got.GroupVersionKind.Kind)
	require.Equal(t, WatchAll, got.Watch)
	require.Equal(t, added.GroupVersionKind, table.byType[reflect.TypeFor[*storagev1.StorageClass]()].gvk)
	require.Equal(t, reflect.TypeFor[storagev1.StorageClass](), table.typeByGVK[added.GroupVersionKind])
	require.IsType(t, &storagev1.StorageClassList{}, added.NewList())
	require.NotContains(t, known.byGroupKind, added.GroupKind())
}
