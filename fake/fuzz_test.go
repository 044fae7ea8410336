// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// FuzzWrite sends any object through every way into the cluster, and lets the simulation look at it.
func FuzzWrite(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ns"},"spec":{"nodeName":"a","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"},"spec":{"taints":[{"key":"k","effect":"NoExecute"}]},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"ns","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}]},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x.y"},"spec":{"group":"y","scope":"Namespaced","names":{"plural":"x","kind":"X"},"versions":[{"name":"v1","served":true,"storage":true}]}}`,
		`{"apiVersion":"y/v1","kind":"X","metadata":{"name":"x","namespace":"ns","finalizers":["a/b"]},"status":{}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
		`{"apiVersion":"operators.coreos.com/v1alpha2","kind":"OperatorGroup","metadata":{"name":"g","namespace":"ns"}}`,
		`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"ns"},"spec":{"minAvailable":"x%"}}`,
		`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"a"},"spec":{"service":{"name":"s"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decode.Decode(data)
		if err != nil {
			return
		}
		for _, load := range []bool{true, false} {
			c := fake.NewCluster(start)
			c.AutoCreateNamespaces = true
			c.Sharing().Watch()
			require.NoError(t, c.Node("a").Create(nil))
			require.NoError(t, c.Create(newPod("other")))
			if load {
				err = c.Load(o)
			} else {
				err = c.Create(o)
			}
			_ = olmcore.Classify(err)
			_ = c.RunFor(10 * time.Minute)
			_ = c.Node("a").Fail()
			_ = c.Node("a").Drain()
			_ = c.Patch(olmcore.KeyOf(o), []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"a":1},"status":{"b":"c"}}`))
			_ = c.Update(o)
			_ = c.UpdateStatus(o)
			_ = c.Delete(refTo(o))
			_ = c.RunFor(10 * time.Minute)
			require.NoError(t, c.Settle())
			_, err = c.Snapshot()
			require.NoError(t, err)
			require.NoError(t, c.Sharing().Verify())
		}
	})
}
