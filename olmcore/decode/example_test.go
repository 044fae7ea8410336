// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"fmt"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Read returns the items of a List as separate objects. Errors name the file, the document and the field.
func ExampleRead() {
	text := `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: team}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: team}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: team}
`
	read, err := decode.Read("team.yaml", strings.NewReader(text))
	fmt.Println(len(read), err)
	objects, err := decode.Distinct(read)
	for i, o := range objects {
		fmt.Printf("%T %s, document %d\n", o, olmcore.KeyOf(o), read[i].Document)
	}
	fmt.Println(err)

	_, err = decode.Read("team.yaml", strings.NewReader(text+"---\napiVersion: v1\n"))
	fmt.Println(err)
	// Output:
	// 3 <nil>
	// *v1.Namespace Namespace team, document 1
	// *v1.ServiceAccount ServiceAccount team/robot, document 1
	// *v1.OperatorGroup OperatorGroup team/group, document 2
	// <nil>
	// team.yaml: document 3: invalid input: kind is empty
}
