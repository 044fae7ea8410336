// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/olmcore"
)

// The status of the OLMConfig reports whether copies match its option.
func ExampleReconcileConfig() {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{
		&operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster", UID: "1", ResourceVersion: "2"}},
	}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := copies.GatherConfig(context.Background(), snapshot, types.NamespacedName{Name: "cluster"}, copies.Config{})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out, err := copies.ReconcileConfig(in)
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target, cause.Reason)
	}
	changed, _ := olmcore.StatusOf[*operatorsv1.OLMConfig](out.Actions)
	for _, c := range changed.Status.Conditions {
		fmt.Println(c.Type, c.Status, c.Reason)
	}
	// Output:
	// updateStatus OLMConfig cluster StatusChanged
	// DisabledCopiedCSVs False CopiedCSVsEnabled
}

// A change of the OLMConfig affects only the OLMConfig.
func ExampleAffectedConfigs() {
	fmt.Println(copies.AffectedConfigs(&operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}))
	// Output:
	// [/cluster]
}
