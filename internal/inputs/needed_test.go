// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"errors"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

func TestNeededNamesWhatIsUnknown(t *testing.T) {
	s, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	_, err = olmcore.List[*v1alpha1.Subscription](t.Context(), s, "ns", nil)
	err = inputs.Needed(err, "what is wanted")
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.EqualError(t, err, "Subscription objects of namespace ns were not read, so what is wanted is unknown")
	require.Equal(t, err, inputs.Needed(err, "less"), "the innermost caller knows best")
	require.EqualError(t, &olmcore.NotReadError{Kind: corev1.SchemeGroupVersion.WithKind("Pod")}, "Pod objects were not read")
	require.NoError(t, inputs.Needed(nil, "a"))
	other := errors.New("timeout")
	require.Equal(t, other, inputs.Needed(other, "a"))
}
