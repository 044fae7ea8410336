// SPDX-License-Identifier: Apache-2.0

package packageserver_test

import (
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/packageserver"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// What a namespace sees: Put is called each time the content of a catalog was read. New serves it.
func ExampleContent() {
	content := &packageserver.Content{GlobalNamespace: "olm"}
	content.Know(&v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
		Spec:       v1alpha1.CatalogSourceSpec{DisplayName: "Community operators"},
	})
	list, _, err := fbc.Read("catalog.yaml", strings.NewReader(`
{"schema":"olm.package","name":"etcd","defaultChannel":"stable"}
{"schema":"olm.channel","package":"etcd","name":"stable","entries":[{"name":"etcd.v1"}]}
{"schema":"olm.bundle","package":"etcd","name":"etcd.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"etcd","version":"1.0.0"}}]}
`), fbc.Options{})
	if err != nil {
		panic(err)
	}
	content.Put(types.NamespacedName{Namespace: "olm", Name: "community"}, list)
	for _, m := range content.Packages("shop") {
		fmt.Println(m.Namespace+"/"+m.Name, "from", m.Status.CatalogSource)
	}
	// Output:
	// shop/etcd from community
}
