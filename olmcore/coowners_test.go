// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

func TestCoOwnersAreReadAsTheyWereRecorded(t *testing.T) {
	csv := func(namespace, name string, uid types.UID) olmcore.Owner {
		return olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: namespace, Name: name, UID: uid}
	}
	owners := []olmcore.Owner{csv("a", "x.v1", ""), csv("a", "x.v2", "uid"), csv("b", "x.v1", "uid")}
	before := map[string]string{"kept": "yes"}
	recorded := olmcore.SetCoOwners(before, []olmcore.Owner{owners[2], owners[0], owners[1]})
	require.Equal(t, map[string]string{"kept": "yes"}, before)
	require.Equal(t, owners, olmcore.CoOwners(recorded))
	require.Equal(t, before, olmcore.SetCoOwners(recorded, nil))
	require.Nil(t, olmcore.SetCoOwners(nil, nil))
}

// TestMalformedCoOwnersAreIgnored checks that an entry counts only under its own key and with a whole value.
func TestMalformedCoOwnersAreIgnored(t *testing.T) {
	key := ""
	for key = range olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "a", Name: "x.v1"}}) {
		break
	}
	for _, value := range []string{"", "/", "a", "a/", "/x.v1", "a/x.v1/", "a/x.v1/uid/more", "b/x.v1"} {
		require.Empty(t, olmcore.CoOwners(map[string]string{key: value}), value)
	}
	require.Empty(t, olmcore.CoOwners(map[string]string{olmcore.AnnotationCoOwnerPrefix + "1": "a/x.v1"}))
	require.Len(t, olmcore.CoOwners(map[string]string{key: "a/x.v1"}), 1)
}

func TestCoOwnersAreBounded(t *testing.T) {
	var owners []olmcore.Owner
	for i := range 2 * olmcore.MaxCoOwners {
		owners = append(owners, olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: fmt.Sprintf("x.v%03d", i)})
	}
	require.Equal(t, owners[:olmcore.MaxCoOwners], olmcore.CoOwners(olmcore.SetCoOwners(nil, owners)))
}
