// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/olmcore"
)

// fickle is a registry of two packages that answers for one of them what the test wants.
type fickle struct {
	*script
	asked  atomic.Int32
	answer atomic.Pointer[func() (*api.Package, error)]
}

func newFickle() *fickle {
	f := &fickle{}
	other := etcd(1)
	other.PackageName, other.CsvName, other.Properties = "other", "other.v1", nil
	f.script = sends(etcd(1), other)
	f.pkg = func(name string) (*api.Package, error) {
		if name == "etcd" {
			f.asked.Add(1)
			if answer := f.answer.Load(); answer != nil {
				return (*answer)()
			}
		}
		return &api.Package{Name: name, DefaultChannelName: "stable"}, nil
	}
	return f
}

// says makes it answer with an error; nil: it answers well.
func (f *fickle) says(err error) {
	if err == nil {
		f.answer.Store(nil)
		return
	}
	f.answer.Store(new(func() (*api.Package, error) { return nil, err }))
}

// TestAnErrorOfOnePackageIsThatOfTheRead: whatever a registry says of one package, nothing is resolved without it
// because of an error that may pass; operator-registry has one code for all of them.
func TestAnErrorOfOnePackageIsThatOfTheRead(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		problem string
	}{
		"of no code":          {fmt.Errorf("open etcd.json: too many open files"), "the registry answers Unknown: open etcd.json: too many open files"},
		"of another package":  {fmt.Errorf(`package "other" not found`), `the registry answers Unknown: package "other" not found`},
		"of a bad argument":   {status.Error(codes.InvalidArgument, "no"), "the registry answers InvalidArgument: no"},
		"that it is not here": {fmt.Errorf(`package "etcd" not found`), `package etcd has bundles, and is not described: package "etcd" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := newWorld(t, registry.Options{}), newFickle()
			w.leads(listen(t, f))
			w.in.Pods.Items = []*corev1.Pod{pod("a", false)}
			w.connection()
			w.untilReady()
			w.requireTarget("etcd.v1.0.0")

			f.says(test.err)
			w.in.Pods.Items = []*corev1.Pod{pod("b", false)}
			w.connection()
			w.until("the failure is told", func() bool { return w.connection().State == "TRANSIENT_FAILURE" })
			require.Equal(t, test.problem, w.connection().Problem)
			w.requireTarget("etcd.v1.0.0")

			f.says(nil)
			w.untilReady()
			w.requireTarget("etcd.v1.0.0")
			asked := f.asked.Load()
			w.connection()
			require.Equal(t, asked, f.asked.Load(), "it is whole, and not read again")
		})
	}
}

// TestWhatARegistrySaysTwiceToMissIsLeftOut, told, and comes back when the registry has it, although nothing else
// changed.
func TestWhatARegistrySaysTwiceToMissIsLeftOut(t *testing.T) {
	for name, err := range map[string]error{
		"by its code":                       status.Error(codes.NotFound, "gone"),
		"in operator-registry's words":      fmt.Errorf(`package "etcd" not found`),
		"in those of an older one":          fmt.Errorf("package etcd not found"),
		"by an answer about something else": nil,
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan []olmcore.Diagnostic, 100)
			w := newWorld(t, registry.Options{Told: func(_ types.NamespacedName, problems []olmcore.Diagnostic) { told <- problems }})
			f := newFickle()
			f.says(err)
			if err == nil {
				f.answer.Store(new(func() (*api.Package, error) { return &api.Package{Name: "other"}, nil }))
			}
			w.leads(listen(t, f))
			w.in.Pods.Items = []*corev1.Pod{pod("a", false)}
			w.connection()
			w.untilReady()
			require.GreaterOrEqual(t, f.asked.Load(), int32(2))
			require.Contains(t, (<-told)[0].Message, "package etcd is left out: it has bundles, and is not described: ")
			name, _ := w.target()
			require.Empty(t, name)

			f.says(nil)
			w.until("it is read again", func() bool { name, _ := w.target(); return name == "etcd.v1.0.0" })
		})
	}
}
