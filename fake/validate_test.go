// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore/decode"
)

// TestObjectsThatTheAPIServerRejects creates each object of the file with which internal/controlplane compares the fake
// cluster with a real API server. None is accepted, and each is rejected with the same message again.
func TestObjectsThatTheAPIServerRejects(t *testing.T) {
	text, err := os.ReadFile("../internal/controlplane/testdata/refused.yaml")
	require.NoError(t, err)
	c := fake.NewCluster(start)
	require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		o, err := decode.Decode(data)
		require.NoError(t, err, document)
		because := o.GetAnnotations()["because"]
		first := c.Create(o)
		var status apierrors.APIStatus
		require.ErrorAs(t, first, &status, because)
		for range 5 {
			require.EqualError(t, c.Create(o), first.Error(), because)
		}
	}
}
