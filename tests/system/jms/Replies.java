import java.util.concurrent.atomic.AtomicReference;
import javax.jms.*;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Temporary destinations, replies to them, and the anonymous relay; prints a line for each. */
public class Replies {
    static final long WAIT_MS = 30_000;

    static String text(MessageConsumer consumer) throws JMSException {
        TextMessage message = (TextMessage) consumer.receive(WAIT_MS);
        return message == null ? "nothing" : message.getText();
    }

    static String refused(JMSException error) {
        return error.getClass().getSimpleName() + ": " + error.getMessage();
    }

    interface Work { void run() throws JMSException; }

    static void expectRefusal(String what, Work work) {
        try {
            work.run();
            System.out.println(what + "=taken");
        } catch (JMSException error) {
            System.out.println(what + "=" + refused(error));
        }
    }

    public static void main(String[] args) throws Exception {
        JmsConnectionFactory factory = new JmsConnectionFactory(args[0]);
        Connection asking = factory.createConnection(), serving = factory.createConnection();
        asking.start();
        serving.start();
        Session asker = asking.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session server = serving.createSession(false, Session.AUTO_ACKNOWLEDGE);

        // Request and reply: the server answers on the anonymous relay, and on a link of its own.
        MessageConsumer requests = server.createConsumer(server.createQueue("orders"));
        TemporaryQueue replies = asker.createTemporaryQueue();
        TextMessage request = asker.createTextMessage("request");
        request.setJMSReplyTo(replies);
        asker.createProducer(asker.createQueue("orders")).send(request);
        Message asked = requests.receive(WAIT_MS);
        Destination replyTo = asked.getJMSReplyTo();
        System.out.println("temporary=" + (replyTo instanceof TemporaryQueue));
        server.createProducer(null).send(replyTo, server.createTextMessage("by the relay"));
        server.createProducer(replyTo).send(server.createTextMessage("by a link"));
        MessageConsumer replied = asker.createConsumer(replies);
        System.out.println("replies=" + text(replied) + "," + text(replied));

        // Only the connection that made it receives from it.
        expectRefusal("foreign", () -> server.createConsumer((Queue) replyTo));

        // A requestor makes a temporary queue for itself.
        AtomicReference<Exception> failure = new AtomicReference<>();
        Thread answering = new Thread(() -> {
            try {
                Message next = requests.receive(WAIT_MS);
                TextMessage answer = server.createTextMessage("answered");
                answer.setJMSCorrelationID(next.getJMSMessageID());
                server.createProducer(null).send(next.getJMSReplyTo(), answer);
            } catch (Exception error) {
                failure.set(error);
            }
        });
        answering.start();
        QueueSession queueing =
            ((QueueConnection) asking).createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
        QueueRequestor requestor = new QueueRequestor(queueing, queueing.createQueue("orders"));
        TextMessage answer = (TextMessage) requestor.request(queueing.createTextMessage("again"));
        answering.join();
        System.out.println("requestor=" + answer.getText() + "," + failure.get());
        requestor.close();

        replied.close();
        replies.delete();
        expectRefusal("deleted", () ->
            server.createProducer(null).send(replyTo, server.createTextMessage("late")));

        TemporaryTopic topic = asker.createTemporaryTopic();
        MessageConsumer first = asker.createConsumer(topic), second = asker.createConsumer(topic);
        server.createProducer(topic).send(server.createTextMessage("linked"));
        server.createProducer(null).send(topic, server.createTextMessage("relayed"));
        System.out.println("first=" + text(first) + "," + text(first));
        System.out.println("second=" + text(second) + "," + text(second));

        // One plain name is a queue and a topic, and the two never meet.
        MessageProducer relay = asker.createProducer(null);
        MessageConsumer news = server.createConsumer(server.createTopic("plain"));
        relay.send(asker.createQueue("plain"), asker.createTextMessage("kept"));
        relay.send(asker.createTopic("plain"), asker.createTextMessage("told"));
        MessageConsumer kept = server.createConsumer(server.createQueue("plain"));
        System.out.println("queue=" + text(kept));
        System.out.println("topic=" + text(news));
        System.out.println("more=" + (kept.receiveNoWait() != null) + "," + (news.receiveNoWait() != null));
        asking.close();
        serving.close();
    }
}
