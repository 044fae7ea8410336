// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

func owner(name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Name: name, UID: types.UID(uid),
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

func TestOwnerReferenceTo(t *testing.T) {
	s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "1"}}
	require.Empty(t, cmp.Diff(owner("a", "1"), olmcore.OwnerReferenceTo(s)))
	require.False(t, olmcore.OwnedBy(s, ""))
	s.OwnerReferences = []metav1.OwnerReference{owner("b", "2")}
	require.True(t, olmcore.OwnedBy(s, "2"))
	require.False(t, olmcore.OwnedBy(s, "3"))
}
