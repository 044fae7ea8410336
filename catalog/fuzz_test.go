// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// FuzzWorld lets the fuzzer choose what fails in TestCatalogServesAgainAfterAnyFailure.
func FuzzWorld(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		w := drawWorld(t)
		steps, left := w.steps(), 200 // an input may ask for any number
		for name, step := range steps {
			steps[name] = func(t *rapid.T) {
				if left--; left >= 0 {
					step(t)
				}
			}
		}
		t.Repeat(steps)
		w.heal(t)
	}))
}

// FuzzObjects checks that arbitrary JSON as the objects of an Input causes no panic and breaks no law.
func FuzzObjects(f *testing.F) {
	in := converged(f, catalog.Config{}, cool())
	seed := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(seed(in.CatalogSource.Spec), seed(in.CatalogSource.Status), seed(in.Pods.Items[0]), seed(in.Nodes.Items[0]), seed(in.Services.Items[0]), seed(in.NetworkPolicies.Items[0]), int64(0))
	f.Add([]byte(`{"sourceType":"grpc","image":"x","updateStrategy":{"registryPoll":{"interval":"-1s"}},"grpcPodConfig":{"memoryTarget":"1e99","extractContent":{}}}`),
		[]byte(`{"conditions":[{"type":"Available"}]}`), []byte(`{"status":{"conditions":[{}]}}`), []byte(`{}`), []byte(`{}`), []byte(`null`), int64(1)<<62)
	f.Fuzz(func(t *testing.T, spec, status, pod, node, service, policy []byte, seconds int64) {
		in := emptyNamespace(catalog.Input{Now: start.Add(time.Duration(seconds % int64(1000*time.Hour))), Namespace: olmNamespace()})
		cs := cool()
		cs.UID, cs.Generation, cs.ResourceVersion = "1", seconds%3, "1"
		if panics := decodeInto(spec, &cs.Spec); panics || decodeInto(status, &cs.Status) {
			return // the API type itself does not take it
		}
		in.CatalogSource = cs
		for _, data := range [][]byte{pod, node} {
			p := &corev1.Pod{}
			decodeInto(data, p)
			p.Namespace, p.UID, p.ResourceVersion = "olm", "2", "2"
			in.Pods.Items = append(in.Pods.Items, p)
		}
		n, s, np := &corev1.Node{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}
		decodeInto(node, n)
		decodeInto(service, s)
		decodeInto(policy, np)
		s.UID, s.ResourceVersion, np.UID, np.ResourceVersion = "3", "3", "4", "4"
		in.Services.Items, in.NetworkPolicies = []*corev1.Service{s}, olmcore.Found(np)
		if seconds%2 == 0 {
			in.Nodes = olmcore.Found(n)
		}
		out, err := catalog.Reconcile(in)
		if err != nil {
			if !errors.Is(err, olmcore.ErrInvalidInput) {
				t.Fatal(err)
			}
			return
		}
		checkSafety(t, in, out, 5)
		err = errors.Join(invariant.Deterministic(result, in), invariant.Pure(result, in), invariant.Separate(out.Result))
		if out.RequeueAfter != time.Second { // which may stand for a part of it
			err = errors.Join(err, invariant.DeadlineSound(result, in))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// decode reports whether the API type panics. Data that it rejects is ignored.
func decodeInto(data []byte, into any) (panics bool) {
	defer func() { panics = recover() != nil }()
	_ = json.Unmarshal(data, into)
	return false
}
