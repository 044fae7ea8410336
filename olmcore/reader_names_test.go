// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// unasked fails a test if an object is asked for.
type unasked struct {
	olmcore.Reader
	t *testing.T
}

func (r unasked) Get(_ context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	require.Fail(r.t, "asked for "+gvk.Kind+" "+namespace+"/"+name)
	return nil, nil
}

// TestNoObjectIsAskedForUnderNoName checks that names and namespaces that are no segment of a path are those of no
// object: a client cannot make a path of them, or makes the path of another object.
func TestNoObjectIsAskedForUnderNoName(t *testing.T) {
	r := unasked{t: t}
	for _, name := range []string{"", ".", "..", "a/b", "../../nodes", "a%2fb", strings.Repeat("a", 5000)} {
		o, err := olmcore.Get[*corev1.Secret](t.Context(), r, "ns", name)
		require.NoError(t, err, name)
		require.Nil(t, o, name)
		_, err = olmcore.GetKind(t.Context(), r, corev1.SchemeGroupVersion.WithKind("Secret"), "ns", name)
		require.True(t, apierrors.IsNotFound(err), name)
		if name != "" { // cluster-scoped objects have no namespace
			_, err = olmcore.Require[*corev1.Secret](t.Context(), r, name, "x")
			require.True(t, apierrors.IsNotFound(err), name)
		}
	}
}
