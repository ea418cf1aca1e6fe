// An informer of nodes and one of pods, as client-go offers them.
package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	client := kubernetes.NewForConfigOrDie(&rest.Config{
		Host:            os.Args[1],
		BearerToken:     "bench",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(os.Args[2])},
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Core().V1().Nodes().Informer()
	factory.Core().V1().Pods().Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	fmt.Println("synced")
	<-stop
}
