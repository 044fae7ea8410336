// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
)

// A Subscription references an InstallPlan that does not exist any more.
func ExampleFind() {
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "1", ResourceVersion: "8"},
		Spec:       &v1alpha1.SubscriptionSpec{CatalogSource: "community", CatalogSourceNamespace: "olm", Package: "etcd"},
	}
	sub.Labels = map[string]string{"operators.coreos.com/etcd.ops": ""}
	sub.Status.InstallPlanRef = &corev1.ObjectReference{
		APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: "ops", Name: "install-abcde", UID: "2",
	}
	sub.Status.Install = &v1alpha1.InstallPlanReference{
		APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Name: "install-abcde", UID: "2",
	}
	findings, err := audit.Find(subscription.Input{
		Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Namespace: "ops",
		Subscriptions:          olmcore.Found(sub),
		InstallPlans:           olmcore.Found[*v1alpha1.InstallPlan](),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		OperatorGroups:         olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}),
	})
	if err != nil {
		panic(err)
	}
	for _, f := range findings {
		fmt.Println(f.Severity, f.Reason, f.Target)
		fmt.Println(f.Message)
		fmt.Println(len(f.Repair), "repairs, safe without asking:", f.Safe)
	}
	// Output:
	// Warning RefMissingPlan Subscription ops/etcd
	// InstallPlan install-abcde does not exist
	// 1 repairs, safe without asking: true
}
